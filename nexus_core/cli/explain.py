"""`nexus explain`."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperOption

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.ledger import LedgerUrl, find_session, open_session, session_option
from nexus_core.cli.options import Json, Profile, RequireTrusted  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.errors import UsageError, did_you_mean
from nexus_core.layers.explaining import MAX_PLACES, Explanation, QueryExplanations, answer_query
from nexus_core.layers.loader import OWN_PROFILE
from nexus_core.text.visible import shortened, visible_line
from nexus_core.values.source import source_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from typer._click import Context  # private, but it is what the method we override is typed with

    from nexus_core.cli.shell import CommandShell
    from nexus_core.layers.agent_access import FileAccess
    from nexus_core.nexus import Nexus
    from nexus_core.values.loaded import Loaded

app = typer.Typer()

_LONGEST_QUERY = 100
"""Characters of a query that an answer repeats."""
MIB = 1024 * 1024


class FreeTextCommand(TyperCommand):
    """A command whose argument may be a sentence that begins with a hyphen, such as a bullet that was pasted."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments; a sentence is never an option."""
        return super().parse_args(ctx, self._put_sentences_last(args))

    def _put_sentences_last(self, args: list[str]) -> list[str]:
        options = [param for param in self.params if isinstance(param, TyperOption)]
        names = {name for option in options for name in (*option.opts, *option.secondary_opts)}
        with_value = {name for option in options if not option.is_flag for name in option.opts}
        kept: list[str] = []
        sentences: list[str] = []
        for at, argument in enumerate(args):
            is_value = at > 0 and args[at - 1] in with_value and args[at - 1] in kept[-1:]
            if argument == "--":
                return [*kept, "--", *sentences, *args[at + 1 :]]
            (sentences if not is_value and _is_sentence(argument, names) else kept).append(argument)
        return [*kept, "--", *sentences] if sentences else kept


def _is_sentence(argument: str, names: set[str]) -> bool:
    """True if an argument begins like an option and cannot be one."""
    if not argument.startswith("-") or not re.search(r"\s", argument):
        return False
    # `--session=my label` and `-C/my directory` are options with a value.
    has_path = argument[:2] in names and argument[2:3] in {"/", ".", "~"}
    return not has_path and argument.partition("=")[0] not in names


Query = Annotated[
    str,
    typer.Argument(
        metavar="X", help="A setting (provider.model), an MCP server, a file, or a sentence of any file of the project."
    ),
]
Session = Annotated[str, session_option("Look into a session: X is a step, or a piece of what was said.")]


_PLUGIN = "plugin:"
_EXAMPLES = """
\b
Examples:
  nexus explain provider.model
  nexus explain "- Never log a token"
"""


@app.command(cls=FreeTextCommand, epilog=_EXAMPLES)
def explain(
    ctx: typer.Context,
    query: Query,
    *,
    session: Session = "",
    profile: Profile = OWN_PROFILE,
    ledger: LedgerUrl = "",
    json: Json = False,
    require_trusted: RequireTrusted = False,
) -> None:
    """Say where something comes from and what it overrode, or why it is not there.

    A sentence is found wherever it is in the project, with the agents that read it there: Nexus, Claude Code, Codex,
    Gemini CLI. With --session, say which section or step of a session a sentence is in, and why a step is not sent.
    """
    shell: CommandShell = ctx.obj
    if not query.strip():
        raise UsageError(
            "there is nothing to explain", hint="name a setting, an MCP server, a file, or a piece of the prompt"
        )
    with open_session(ctx, session, ledger) as nexus:
        found = _look_into(nexus, session, query) if session else []
        context = nexus.static_context() if profile == OWN_PROFILE else nexus.context(profile=profile)
        answer = QueryExplanations(found)
        if not found or any(each.place.startswith(_PLUGIN) for each in found):
            in_files = answer_query(context, query, load_in=partial(_load_in, nexus))
            answer = QueryExplanations(_trace_to_files(found, in_files.explanations)) if found else in_files
    shell.review(context.loaded, require_trusted=require_trusted, warn=False)
    found, searched = answer.explanations or _default(query), answer.searched
    if json:
        explanations = [each.to_json() for each in found]
        shell.console.json({"schema": 1, "explanations": explanations, "searched": searched and searched.to_json()})
    else:
        _print(shell, found)
    if len(found) >= MAX_PLACES:
        shell.console.warning(f"only the first {MAX_PLACES} places are listed; a longer sentence has fewer")
    elif searched is not None and not searched.is_complete:
        extent = f"{searched.files:,} files ({searched.size // MIB:,} MiB) below {searched.root}"
        shell.console.warning(visible_line(f"there are more files than the {extent} that were searched"))
    if not found:
        named = repr(shortened(query, _LONGEST_QUERY))
        below = f", and no file below {searched.root}," if searched else ""
        message = f"Nothing in the prompt or the settings here{below} matches {named}.{_nearest(query)}"
        shell.console.message(visible_line(message))
        raise typer.Exit(FINDINGS)


def _trace_to_files(found: Sequence[Explanation], in_files: Sequence[Explanation]) -> list[Explanation]:
    """Return explanations with the files from which a plugin has its sections, where these have the sentence."""
    traced: list[Explanation] = []
    for each in found:
        parts = [
            each._replace(place=part.place, readers=part.readers)
            for part in in_files
            if part.subject == each.subject and part.readers
        ]
        traced += parts if each.place.startswith(_PLUGIN) and parts else [each]
    return traced


def _load_in(nexus: Nexus, directory: Path) -> Loaded:
    return nexus.context().load_for(directory).loaded


def _print(shell: CommandShell, found: Sequence[Explanation]) -> None:
    """Print a table; with lines about other agents, one row of it at a time."""
    if not any(len(each.readers) > 1 for each in found):
        if found:
            shell.console.table(_rows(found))
        return
    for each in found:
        shell.console.table(_rows([each]))
        for line in _describe_readers(each):
            shell.console.text(visible_line(f"  {line}"))


def _rows(found: Sequence[Explanation]) -> list[tuple[str, ...]]:
    """Subject, place and remark; a file that is its own place is named once."""
    if all(each.subject and each.place.startswith(each.subject) for each in found):
        return [(each.place, each.remark) for each in found]
    return [(each.subject, source_name(each.place) or "-", each.remark) for each in found]


def _describe_readers(explanation: Explanation) -> Iterator[str]:
    """Say in a line or two which other agents read a file, and why the rest does not."""
    if all(each.status == "unread" and not each.reason for each in explanation.readers):
        return  # which the remark says, if there is anything to say
    own, *others = explanation.readers
    groups: dict[tuple[str, str], list[FileAccess]] = {}
    for each in others:
        groups.setdefault((each.status, each.reason), []).append(each)
    file = explanation.place.rpartition("/")[2].partition(":")[0]
    for (status, reason), group in sorted(groups.items(), key=lambda item: item[0][0] != "read"):
        yield _say(
            status, _and([each.name for each in group]), len(group) > 1, reason, file, is_too=own.status == "read"
        )


def _say(status: str, names: str, is_plural: bool, reason: str, file: str, *, is_too: bool) -> str:
    because = f": {reason}" if reason else ""
    if status == "read":
        return f"{'also ' if is_too else ''}read by {names}" + (f", {reason}" if reason else "")
    if status == "on-demand":
        return f"{names} {'load' if is_plural else 'loads'} it on demand, {reason}"
    if status == "elsewhere":
        return f"{names} {'read' if is_plural else 'reads'} it {reason}"
    if status == "cut":
        return f"{names} {'do' if is_plural else 'does'} not read all of {file}{because}"
    return f"{names} {'do' if is_plural else 'does'} not read {file}{because}"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _look_into(nexus: Nexus, session: str, query: str) -> list[Explanation]:
    from nexus_core.session.explaining import explain_in_session  # noqa: PLC0415 - only with --session

    record = find_session(nexus.ledger, session)
    context = nexus.assemble(nexus.request(session=record.label), must_fit=False)
    return explain_in_session(nexus.ledger, record, context, query)


def _nearest(query: str) -> str:
    from nexus_core.config.keys import known_keys  # noqa: PLC0415 - only where nothing is found

    nearest = did_you_mean(query, known_keys())
    return f" {nearest.capitalize()}" if nearest else ""


def _default(query: str) -> list[Explanation]:
    from nexus_core.config.keys import default_of, known_keys  # noqa: PLC0415 - only where nothing else is found

    if query not in known_keys():
        return []
    default = default_of(query)
    return [
        Explanation(query, "", "not set; no default" if default is None else f"not set; the default is {default!r}")
    ]
