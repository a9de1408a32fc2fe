"""`nexus context` without a file: where the tokens of a request go, that of this directory or of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.bars import Row, print_bars
from nexus_core.cli.context.shares import shares_of, shares_of_prompt
from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.ledger import open_session
from nexus_core.cli.measure import byte_sentence, open_measure
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
    from nexus_core.values.message import Message
    from nexus_core.values.settings import Settings


class Looked(NamedTuple):
    """What was found.

    Attributes:
        name: What it is about.
        shares: Where the tokens go.
        measure: Who counted, and for whom.
        messages: What is said, with what each message takes.
        directory: Where the agent works.
        session: The session, "" for none.
    """

    name: str
    shares: Shares
    measure: Measure
    messages: Sequence[tuple[Message, int]]
    directory: str
    session: str

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
    messages = list(zip(context.messages, context.message_tokens, strict=True))
    name = f"session {wanted.session}" if wanted.session else str(nexus.cwd)
    return Looked(name, shares_of(context), measure, messages, str(nexus.cwd), wanted.session)


def _look_as(nexus: Nexus, shell: CommandShell, wanted: Wanted) -> Looked:
    context = nexus.context(profile=wanted.profile)
    shell.review(context.loaded, require_trusted=wanted.require_trusted)
    measure = open_measure(nexus, nexus.load().settings, wanted.model)
    count = measure.counter.count
    total = count(context.system_prompt) if context.sections else 0
    shares = shares_of_prompt(context, lambda section: count(render_section(section)), total)
    return Looked(f"{context.cwd}, as {wanted.profile} reads it", shares, measure, [], str(context.cwd), "")


def _print(shell: CommandShell, found: Looked, wanted: Wanted) -> None:
    shares, total = found.shares, found.shares.total
    facts = [f"{counted(len(shares.sections), 'section')} of the system prompt"]
    facts += [counted(len(shares.tools), "tool")] if shares.tools else []
    facts += [counted(len(found.messages), "message")] if found.messages else []
    shell.console.text(visible_line(f"{found.name}: {', '.join(facts)}"))
    shell.console.text(found.measure.sentence(total))
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
    from nexus_core.cli.context.transcript import excerpt  # noqa: PLC0415 - not for a tree

    console, shares, total = shell.console, found.shares, found.shares.total
    if shares.budget is not None:
        print_bars(console, ("ZONE",), _rows(_window(shares)), shares.budget.limit, "OF WINDOW")
        print_bars(console, ("KIND",), _rows(shares.kinds()), total)
        print_bars(console, ("LAYER",), _rows(shares.layers()), total)
    here = f"{found.directory}/"  # a path is cut at its end, where it says most
    sections = [
        Row(each.name, each.tokens, remark=source_name(each.uri.removeprefix(here))) for each in shares.sections
    ]
    print_bars(console, ("SECTION", "SOURCE"), sections, total)
    tools = sorted(shares.tools, key=lambda each: -each.tokens)[:top]
    rows = [Row(each.name, each.tokens, remark=source_name(each.uri)) for each in tools]
    print_bars(console, ("TOOL", "SOURCE"), rows, total)
    largest = sorted(enumerate(found.messages), key=lambda each: -each[1][1])[:top]
    rows = [
        Row(f"message {place}", tokens, remark=f"{message.role}: {excerpt(message)}")
        for place, (message, tokens) in largest
    ]
    print_bars(console, ("LARGEST", "SAYS"), rows, total)


def _window(shares: Shares) -> dict[str, int]:
    """The model's window, with what is free in it."""
    assert shares.budget is not None  # noqa: S101 - asked before
    kept = {"for the answer": shares.budget.reserve_response, "for tools": shares.budget.reserve_tools}
    return {**shares.zones(), **kept, "free": max(shares.budget.remaining, 0)}


def _print_tree(shell: CommandShell, shares: Shares) -> None:
    from nexus_core.cli.context.tree import tree_lines, tree_of  # noqa: PLC0415 - only for a tree
    from nexus_core.cli.tables import right_aligned  # noqa: PLC0415 - as above

    rows = [("TOKENS", "SHARE", "WHAT", "SOURCE"), *tree_lines(tree_of(shares), shares.total)]
    shell.console.text("")
    shell.console.table(right_aligned(rows, {0, 1}), styles=["bold"])


def _rows(sums: Mapping[str, int]) -> list[Row]:
    return [Row(source_name(name), tokens) for name, tokens in sums.items() if tokens]
