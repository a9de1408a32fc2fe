"""A request on a terminal: for a reader, as the body of an API's call, or with everything that is known of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.conversation import Tool
    from nexus_core.values.finding import Finding
    from nexus_core.values.message import Message
    from nexus_core.values.settings import Settings
    from nexus_core.values.trust import ActivePart


def require_dialect(shell: CommandShell, name: str) -> None:
    """Refuse an API that nobody knows.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name:
        shell.dialects().get(name)


def print_request(
    shell: CommandShell,
    nexus: Nexus,
    settings: Settings,
    context: AssembledContext,
    dialect: str,
    *,
    json: bool,
    active: Iterable[ActivePart] | None = None,
) -> None:
    """Print a request; what a person should know about it goes to standard error.

    Args:
        shell: Where to print.
        nexus: Who put it together.
        settings: What knows models.
        context: The request.
        dialect: The API whose call is printed; "" for a reader.
        json: Whether everything is printed that is known.
        active: What projects want to start, connect to or set; `--json` lists what of it is off.
    """
    context = replace(context, findings=(*context.findings, *_remarks(nexus, settings, context, dialect)))
    for finding in context.findings:
        shell.console.warning(visible_line(str(finding)))
    if json:
        from nexus_core.cli.request.facts import facts_of  # noqa: PLC0415 - only with --json

        shell.console.json(facts_of(context, nexus.dialects, dialect) | _skipped(active))
        return
    if dialect:
        shell.console.json(context.to(dialect))
    else:
        _print(shell, context)
    _print_budget(shell, nexus, settings, context)


def _remarks(nexus: Nexus, settings: Settings, context: AssembledContext, dialect: str) -> tuple[Finding, ...]:
    if not dialect:
        return ()
    from nexus_core.cli.request.remarks import remarks_on  # noqa: PLC0415 - most want to read it

    return tuple(remarks_on(nexus, settings, context, dialect))


def _skipped(active: Iterable[ActivePart] | None) -> dict[str, object]:
    if active is None:
        return {}
    from nexus_core.trust.mentioning import left_off  # noqa: PLC0415 - only with --json

    return {"skipped": left_off(active)}


def _print(shell: CommandShell, context: AssembledContext) -> None:
    used, first = context.token_budget.used, True
    for heading, lines in _blocks(context, used.get("system", 0), used.get("tools", 0)):
        if not first:
            shell.console.text("")
        first = False
        shell.console.table([(heading,)], styles=["bold"])
        if isinstance(lines, list):
            shell.console.text("\n".join(f"  {line}".rstrip() for line in lines))
        else:
            from nexus_core.cli.session.telling import print_lines, tell_words  # noqa: PLC0415 - a prompt alone is text

            print_lines(shell.console, tell_words(lines, full=True, secrets=True))


def _blocks(context: AssembledContext, system: int, tools: int) -> Iterator[tuple[str, list[str] | Message]]:
    if context.system_prompt:
        yield f"system · {system:,} tokens", context.system_prompt.rstrip("\n").split("\n")
    if context.tools:
        yield f"tools · {tools:,} tokens", [_signature(tool) for tool in context.tools]
    sizes = context.message_tokens or (0,) * len(context.messages)
    for message, tokens in zip(context.messages, sizes, strict=True):
        yield f"{message.role} · {tokens:,} tokens", message


def _signature(tool: Tool) -> str:
    properties = tool.parameters.get("properties")
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    about = " ".join(tool.description.split())
    return visible_line(f"{tool.name}({names})" + (f": {about}" if about else ""))


def _print_budget(shell: CommandShell, nexus: Nexus, settings: Settings, context: AssembledContext) -> None:
    from nexus_core.cli.measure import byte_sentence, is_all_text, open_measure  # noqa: PLC0415 - not for whoever wants JSON
    from nexus_core.cli.request.left_out import left_out  # noqa: PLC0415 - as above

    budget = context.token_budget
    measure = open_measure(nexus, settings, context.model)
    used = {**budget.used, "event": budget.used.get("event", 0) - budget.margin, "margin": budget.margin}
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in used.items() if tokens)
    sentence = measure.sentence(budget.total, exact=is_all_text(context.messages))
    shell.console.message(f"{sentence}{f': {parts}' if parts else ''}")
    if (budget.low, budget.high) != (budget.total, budget.total):
        more = f"{abs(budget.correction):,} {'more' if budget.correction >= 0 else 'fewer'} at most"
        shell.console.message(f"As its provider counts, that is {budget.low:,} to {budget.high:,}, {more}.")
    kept_free = f"{budget.reserve_response:,} tokens are kept free for the answer"
    kept_free += f" and {budget.reserve_tools:,} for tool results" if budget.reserve_tools else ""
    shell.console.message(f"{kept_free}, {budget.remaining:,} are left.")
    if large := byte_sentence(budget):
        shell.console.message(f"{large}.")
    for each in left_out(context):
        shell.console.message(visible_line(f"left out: {each}"))
