"""`nexus context` without a file: where the tokens of this directory's prompt go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from nexus_core.cli.bars import Row, print_bars
from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.measure import open_measure
from nexus_core.rendering.labelled import render_section
from nexus_core.text.console import counted

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.section import Section


class _Sized(NamedTuple):
    section: Section
    tokens: int

    @property
    def source(self) -> str:
        return self.section.source.uri if self.section.source else ""


def show_prompt(shell: CommandShell, model: str, *, json: bool, require_trusted: bool) -> None:
    """Print the sections of the prompt with their tokens and sources."""
    with shell.nexus() as nexus:
        context = nexus.context()
        measure = open_measure(nexus, context.loaded.settings, model)
        sections = [_Sized(each, measure.counter.count(render_section(each))) for each in context.sections]
        total = measure.counter.count(context.system_prompt)
    shell.review(context.loaded, require_trusted=require_trusted)
    if json:
        facts = {"schema": 1, "directory": str(context.cwd), **measure.facts(total)}
        shell.console.json({**facts, "sections": [_described(each) for each in sections]})
    else:
        shell.console.text(f"{context.cwd}: {counted(len(sections), 'section')} of the system prompt")
        shell.console.text(measure.sentence(total))
        rows = [Row(each.section.title, each.tokens, remark=each.source) for each in sections]
        print_bars(shell.console, ("SECTION", "SOURCE"), rows, total)
    if measure.is_exceeded_by(total):
        raise typer.Exit(FINDINGS)


def _described(sized: _Sized) -> dict[str, object]:
    source = sized.section.source
    return {
        "id": sized.section.id,
        "title": sized.section.title,
        "tokens": sized.tokens,
        "source": source and {"uri": source.uri, "layer": source.layer, "plugin": source.plugin},
    }
