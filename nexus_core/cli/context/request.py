"""`nexus context` without a file: where the tokens of a request go, that of this directory or of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.bars import Row, limit_rows, print_bars
from nexus_core.cli.context.excerpts import excerpt, restore_user_inputs
from nexus_core.cli.context.shares import FRAMING, shares_of, shares_of_prompt
from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.ledger import find_session, open_session
from nexus_core.cli.measure import byte_sentence, is_all_text, open_measure
from nexus_core.layers.loader import OWN_PROFILE
from nexus_core.rendering.labelled import render_section
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line
from nexus_core.values.source import source_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.cli.context.command import Wanted
    from nexus_core.cli.context.shares import Shares
    from nexus_core.cli.measure import Measure
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.message import Message
    from nexus_core.values.settings import Settings


class Looked(NamedTuple):
    """What was found.

    Attributes:
        name: What it is about.
        shares: Where the tokens go.
        measure: Who counted, and for whom.
        messages: The messages that are sent, with the tokens of each.
        original: The same messages, user messages as passed to `ask`.
        directory: Where the agent works.
        session: The session, "" for none.
    """

    name: str
    shares: Shares
    measure: Measure
    messages: Sequence[tuple[Message, int]]
    original: Sequence[Message]
    directory: str
    session: str

    @property
    def is_all_text(self) -> bool:
        """True if all messages can be counted, not only estimated."""
        return is_all_text(message for message, _ in self.messages)

    @property
    def fits(self) -> bool:
        """Whether a model can be sent it."""
        budget = self.shares.budget
        if budget is None:
            return self.shares.total <= self.measure.window
        return budget.remaining >= 0 and budget.remaining_bytes >= 0


def show_request(ctx: typer.Context, wanted: Wanted) -> None:
    """Print where the tokens of a request go."""
    shell: CommandShell = ctx.obj
    with open_session(ctx, wanted.session, wanted.ledger) as nexus:
        if wanted.session:
            wanted = wanted._replace(session=find_session(nexus.ledger, wanted.session).label)
        if wanted.profile == OWN_PROFILE:
            loaded = nexus.load()
            shell.review(loaded, require_trusted=wanted.require_trusted)
            found = _look(nexus, loaded.settings, wanted)
        else:
            found = _look_as(nexus, shell, wanted)
    if wanted.json:
        from nexus_core.cli.context.request_facts import facts_of  # noqa: PLC0415 - only with --json

        shell.console.json(facts_of(found, tree=wanted.tree))
    else:
        _print(shell, found, wanted)
    if not found.fits and not found.measure.is_assumed:
        raise typer.Exit(FINDINGS)


def _look(nexus: Nexus, settings: Settings, wanted: Wanted) -> Looked:
    request = nexus.request(model=wanted.model, session=wanted.session)
    context = nexus.assemble(request, must_fit=False)
    measure = open_measure(nexus, settings, context.model)
    messages = list(zip(context.messages, _without_margin(context), strict=True))
    name = f"session {wanted.session}" if wanted.session else str(nexus.cwd)
    original: Sequence[Message] = context.messages
    if wanted.session and wanted.top and not wanted.json:
        original = restore_user_inputs(context, nexus.session(wanted.session))
    return Looked(name, shares_of(context), measure, messages, original, str(nexus.cwd), wanted.session)


def _without_margin(context: AssembledContext) -> list[int]:
    """Return the tokens of each message, of the current one without its safety margin."""
    tokens = list(context.message_tokens)
    if context.current_message is not None:
        tokens[len(context.history)] -= context.token_budget.margin
    return tokens


def _look_as(nexus: Nexus, shell: CommandShell, wanted: Wanted) -> Looked:
    context = nexus.context(profile=wanted.profile)
    shell.review(context.loaded, require_trusted=wanted.require_trusted)
    measure = open_measure(nexus, nexus.load().settings, wanted.model)
    count = measure.counter.count
    total = count(context.system_prompt) if context.sections else 0
    shares = shares_of_prompt(context, lambda section: count(render_section(section)), total)
    return Looked(f"{context.cwd}, as {wanted.profile} reads it", shares, measure, [], [], str(context.cwd), "")


def _print(shell: CommandShell, found: Looked, wanted: Wanted) -> None:
    shares, total = found.shares, found.shares.total
    facts = [f"{counted(len(shares.sections), 'section')} of the system prompt"]
    facts += [counted(len(shares.tools), "tool")] if shares.tools else []
    facts += [counted(len(found.messages), "message")] if found.messages else []
    shell.console.text(visible_line(f"{found.name}: {', '.join(facts)}"))
    shell.console.text(found.measure.sentence(total, exact=found.is_all_text))
    if shares.budget is not None and (large := byte_sentence(shares.budget)):
        shell.console.text(large)
    if wanted.tree:
        _print_tree(shell, shares)
    else:
        _print_tables(shell, found, wanted.top)
    if shares.left_out:
        rows = [(each.what, "-" if each.tokens is None else f"{each.tokens:,}", each.rule) for each in shares.left_out]
        shell.console.text("")
        shell.console.table([("LEFT OUT", "TOKENS", "BY"), *rows], styles=["bold"])


def _print_tables(shell: CommandShell, found: Looked, top: int) -> None:
    console, shares, total = shell.console, found.shares, found.shares.total
    if shares.budget is not None:
        limit = shares.budget.limit
        print_bars(console, ("ZONE",), _rows(_window(shares)), limit, share_of="OF WINDOW", sum_name="window")
        print_bars(console, ("KIND",), _rows(shares.kinds()), total)
        print_bars(console, ("LAYER",), _rows(shares.layers()), total)
    here = f"{found.directory}/"  # a path is cut at its end, where it says most
    sections = [
        Row(each.name, each.tokens, remark=source_name(each.uri.removeprefix(here))) for each in shares.sections
    ]
    if shares.framing:
        sections.append(Row(FRAMING, shares.framing, remark="headings and separators"))
    print_bars(console, ("SECTION", "SOURCE"), sections, total, sum_name="system prompt")
    rows = [Row(each.name, each.tokens, remark=source_name(each.uri)) for each in shares.tools]
    print_bars(console, ("TOOL", "SOURCE"), limit_rows(rows, top, "tool"), total, sum_name="all tools")
    rows = [
        Row(f"message {place}", tokens, remark=f"{message.role}: {excerpt(message)}")
        for place, (message, (_, tokens)) in enumerate(zip(found.original, found.messages, strict=True))
    ]
    print_bars(console, ("LARGEST", "SAYS"), limit_rows(rows, top, "message"), total, sum_name="all messages")


def _window(shares: Shares) -> dict[str, int]:
    """Return what the model's window is divided into; `free` is negative where it does not fit."""
    budget = shares.budget
    assert budget is not None  # noqa: S101 - asked before
    kept = {"for the answer": budget.reserve_response, "for tool results": budget.reserve_tools}
    return {**shares.zones(), "as the provider counts": budget.correction, **kept, "free": budget.remaining}


def _print_tree(shell: CommandShell, shares: Shares) -> None:
    from nexus_core.cli.context.tree import tree_lines, tree_of  # noqa: PLC0415 - only for a tree
    from nexus_core.cli.tables import right_aligned  # noqa: PLC0415 - as above

    rows = [("TOKENS", "SHARE", "WHAT", "SOURCE"), *tree_lines(tree_of(shares))]
    shell.console.text("")
    shell.console.table(right_aligned(rows, {0, 1}), styles=["bold"])


def _rows(sums: Mapping[str, int]) -> list[Row]:
    return [Row(source_name(name), tokens) for name, tokens in sums.items() if tokens]
