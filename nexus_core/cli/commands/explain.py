"""`nexus explain`: the origin of a setting, a server, a file or a sentence."""

from __future__ import annotations

import re
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperOption

from nexus_core.cli.context import EXIT_FINDINGS
from nexus_core.cli.options import (
    AgentFileOption,
    AgentOption,
    JsonOption,
    RequireTrustedOption,
    check_agent_files,
)
from nexus_core.cli.session_lookup import LedgerOption, build_session_option, find_session, open_session_nexus
from nexus_core.errors import FileError, LedgerError, UsageError, did_you_mean
from nexus_core.layers import OWN_PROFILE
from nexus_core.layers.explain import MAX_EXPLAINED_FILES, Explanation, QueryExplanations, answer_query
from nexus_core.text.safety import shorten, visible_line
from nexus_core.text.sentences import SentenceMatcher
from nexus_core.types.prompt import format_source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from typer._click import Context  # private, but it is what the method we override is typed with

    from nexus_core.cli.context import CliContext
    from nexus_core.layers.explain import FileAccess
    from nexus_core.nexus import Nexus
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.memory import Memory

app = typer.Typer()

_MAX_QUERY_CHARACTERS = 100
"""Characters of a query that an answer repeats."""
BYTES_PER_MIB = 1024 * 1024
_MAX_UNREAD_FILES = 5
"""Places that no agent reads and that are printed beside one that is read: tests and documents repeat rules."""
_MAX_LISTED_SESSIONS = 3
"""Sessions that the remark about a note names."""
_MIN_SENTENCE_WORDS = 2
"""Words of a sentence that is looked for in sessions: a single one is in many turns, or is a name."""
_MAX_EPISODES_READ = 20
"""Turns with words of a sentence that are compared with it, the best first."""
_MAX_SESSIONS_READ = 100
"""Sessions that are searched for a turn that was sent, those changed last: each is read as a whole."""


class FreeTextCommand(TyperCommand):
    """A command whose argument may begin with a hyphen, such as a pasted bullet."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments. A sentence is never an option."""
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


QueryArgument = Annotated[
    str,
    typer.Argument(
        metavar="X", help="A setting (provider.model), an MCP server, a file, or a sentence of any file of the project."
    ),
]
SessionOption = Annotated[str, build_session_option("Look into a session: X is a step, or a piece of a message.")]


_PLUGIN_PREFIX = "plugin:"
_STEP_PREFIX = "step:"
_EXAMPLES = """
\b
Examples:
  nexus explain provider.model
  nexus explain "- Never log a token"
"""


@app.command(cls=FreeTextCommand, epilog=_EXAMPLES)
def explain(
    ctx: typer.Context,
    query: QueryArgument,
    *,
    session: SessionOption = "",
    profile: AgentOption = OWN_PROFILE,
    file: AgentFileOption = None,
    ledger: LedgerOption = "",
    json: JsonOption = False,
    require_trusted: RequireTrustedOption = False,
) -> None:
    """Show where a setting, server, file or sentence comes from.

    What it overrode is shown, too, or why it is not there. A sentence is found wherever it is in the project, with the
    agents that read it there: Nexus and those that --as names. With --file, rules of that agent for the file count as
    read. With --session, say which section or step of a
    session a sentence is in, and why a step is not sent.
    """
    cli: CliContext = ctx.obj
    if not query.strip():
        raise UsageError(
            "there is nothing to explain", hint="name a setting, an MCP server, a file, or a piece of the prompt"
        )
    files = check_agent_files(profile, file)
    with open_session_nexus(ctx, session, ledger) as nexus:
        found = _explain_in_session(nexus, session, query) if session else []
        other = None if profile == OWN_PROFILE else nexus.context(profile=profile, files=files)
        context = nexus.static_context() if other is None else other
        answer, memories = QueryExplanations(found), _ExplainedMemories(cli, nexus)
        is_on = other is None and context.loaded.settings.get("memory.enabled") is True
        # They may have to build the search index first.
        rules = memories.find_rules(query) if is_on and not found else []
        episodes = memories.find_episodes(query) if is_on and not found else []
        if not found or any(each.place.startswith(_PLUGIN_PREFIX) for each in found):
            find_notes = memories.find_notes if other is None else dict
            in_files = answer_query(context, query, load_in=partial(_load_directory, nexus), find_notes=find_notes)
            shown = [*in_files.explanations, *rules]
            receivers = _find_receivers(cli, nexus, {each.note for each in (*shown, *episodes) if each.note})
            # A turn that was never sent is not part of any prompt, unlike a note, which may become one.
            known = {each.note for each in rules}
            shown += [each for each in episodes if receivers[each.note] and each.note not in known]
            shown = [_name_receivers(each, receivers.get(each.note, ())) for each in shown]
            in_files = in_files._replace(explanations=shown)
            answer = QueryExplanations(_trace_to_files(found, shown)) if found else in_files
    cli.review(context.loaded, require_trusted=require_trusted, warn=False)
    cli.note_outside_files(None if other is None else other.agent_view)
    found, searched = [*answer.explanations] or _explain_default(query), answer.searched
    if json:
        explanations = [each.to_json() for each in found]
        cli.console.json({"schema": 1, "explanations": explanations, "searched": searched and searched.to_json()})
    else:
        _print_explanations(cli, found)
    if len(found) >= MAX_EXPLAINED_FILES:
        cli.console.warning(f"only the first {MAX_EXPLAINED_FILES} places are listed; a longer sentence has fewer")
    elif searched is not None and not searched.is_complete:
        extent = f"{searched.files:,} files ({searched.size // BYTES_PER_MIB:,} MiB) below {searched.root}"
        cli.console.warning(visible_line(f"there are more files than the {extent} that were searched"))
    if not found:
        named = repr(shorten(query, _MAX_QUERY_CHARACTERS))
        below = f", and no file below {searched.root}," if searched else ""
        message = f"Nothing in the prompt or the settings here{below} matches {named}.{_suggest_setting(query)}"
        message += "" if session else _suggest_session(query)
        cli.console.message(visible_line(message))
        raise typer.Exit(EXIT_FINDINGS)


def _trace_to_files(found: Sequence[Explanation], in_files: Sequence[Explanation]) -> list[Explanation]:
    """Replace sections of plugins by the files that they were read from, if these have the sentence."""
    traced: list[Explanation] = []
    for each in found:
        parts = [
            each._replace(place=part.place, readers=part.readers)
            for part in in_files
            if part.subject == each.subject and part.readers
        ]
        traced += parts if each.place.startswith(_PLUGIN_PREFIX) and parts else [each]
    return traced


def _load_directory(nexus: Nexus, directory: Path) -> LoadedLayers:
    return nexus.context().load_for(directory).loaded


class _ExplainedMemories:
    """Notes and stated rules, each with when it is sent; they are read once, if they are needed.

    Args:
        cli: The command.
        nexus: Its Nexus.
    """

    def __init__(self, cli: CliContext, nexus: Nexus) -> None:
        self._cli = cli
        self._nexus = nexus

    def find_notes(self) -> dict[Path, str]:
        """Return the files of notes, each with when it is sent."""
        return {Path(memory.source.uri): when for memory, when in self._memories if memory.source.is_file}

    def find_rules(self, query: str) -> list[Explanation]:
        """Return where the user stated a rule with a text, and when it is sent."""
        sentence = SentenceMatcher(query)
        return [
            Explanation(
                memory.text,
                memory.place,
                f"a rule from session {memory.session}: {when}",
                note=memory.source.uri,
            )
            for memory, when in self._memories
            if not memory.source.is_file and sentence.find(memory.text) is not None
        ][:MAX_EXPLAINED_FILES]

    def find_episodes(self, query: str) -> list[Explanation]:
        """Return the turns of sessions that contain a sentence of several words."""
        if len(query.split()) < _MIN_SENTENCE_WORDS:
            return []
        from nexus_core.ledger.ledger import find_message_texts
        from nexus_core.memory.recall import read_memory_options
        from nexus_core.memory.search import StepQuery, search_steps

        sentence, ledger = SentenceMatcher(query), self._nexus.ledger
        options = read_memory_options(self._cli.load_readable(self._nexus).settings)
        here = None if options.scope == "all" else str(self._nexus.cwd)
        hits = search_steps(ledger, StepQuery(text=query, directory=here, limit=_MAX_EPISODES_READ)).hits
        found = []
        for hit in hits:
            step = ledger.step(hit.step)
            texts = [text for message in (step.messages if step else ()) for text in find_message_texts(message)]
            if any(sentence.find(text) is not None for text in texts):
                uri = f"step:{hit.step}"
                found.append(Explanation(hit.role, uri, f"a turn of session {hit.session}", note=uri))
        return found

    @cached_property
    def _memories(self) -> list[tuple[Memory, str]]:
        from nexus_core.cli.memory_lookup import MemoryCatalog

        try:
            catalog = MemoryCatalog(self._cli, self._nexus)
        except FileError as error:  # then nothing is recalled, as `nexus doctor` says, too
            self._cli.console.warning(visible_line(f"no memory is explained: {error.what} ({error.where})"))
            return []
        when = "recalled when it matches a message" + ("" if catalog.options.enabled else ", if memory.enabled is on")
        return [
            (memory, "forgotten, so it is not recalled" if catalog.forgotten.has(memory) else when)
            for source, memory in catalog.list_with_forgotten(self._cli)
            if source.remove is not None or not memory.source.is_file  # a guide is explained as a file
        ]


def _find_receivers(cli: CliContext, nexus: Nexus, uris: Collection[str]) -> dict[str, list[str]]:
    """Return the sessions in which notes and steps were sent as memories, by file or `step:<id>`, the newest first."""
    from nexus_core.cli.memory_lookup import InjectedMemoryIndex
    from nexus_core.request.memories import list_injected_memories

    names: dict[str, list[str]] = {uri: [] for uri in uris}
    records = nexus.ledger.sessions(status=None) if names else []
    has_steps = any(uri.startswith(_STEP_PREFIX) for uri in names)
    if all(uri.startswith(_STEP_PREFIX) for uri in names):
        records = records[:_MAX_SESSIONS_READ]
    index = InjectedMemoryIndex(nexus.ledger)
    for record in records:
        # No message names a memory before the history, so that whole threads are read.
        try:
            injected = list_injected_memories(nexus.ledger, record)
            sent = {each.source.uri for each in injected}
            sent |= {uri for each in injected if has_steps for uri in index.find_quoted(each)}
        except LedgerError as error:
            cli.console.warning(visible_line(f"session {record.label} is not searched: {error.what}"))
            continue
        for uri in names.keys() & sent:
            names[uri].append(record.label)
        if all(len(labels) > _MAX_LISTED_SESSIONS for labels in names.values()):
            break
    return names


def _name_receivers(explanation: Explanation, labels: Sequence[str]) -> Explanation:
    """Add the sessions in which a memory was sent to its remark."""
    more = ", …" if len(labels) > _MAX_LISTED_SESSIONS else ""
    names = f"; sent in session {', '.join(labels[:_MAX_LISTED_SESSIONS])}{more}" if labels else ""
    return explanation._replace(remark=f"{explanation.remark}{names}")


def _print_explanations(cli: CliContext, found: Sequence[Explanation]) -> None:
    """Print a table, or with lines about other agents, row by row."""
    if not any(len(each.readers) > 1 for each in found):
        if found:
            cli.console.table(_build_rows(found))
        return
    unread = [each for each in found if all(one.status == "unread" and not one.reason for one in each.readers)]
    unlisted = unread[_MAX_UNREAD_FILES:] if len(unread) < len(found) else []
    for each in found:
        if each in unlisted:
            continue
        cli.console.table(_build_rows([each]))
        for line in _describe_readers(each):
            cli.console.text(visible_line(f"  {line}"), wrap=True)
    if unlisted:
        cli.console.message(f"{len(unlisted):,} more places that no agent reads by itself; --json lists them")


def _build_rows(found: Sequence[Explanation]) -> list[tuple[str, ...]]:
    """Return rows of subject, place and remark. A file that is its own place is named once."""
    if all(each.subject and each.place.startswith(each.subject) for each in found):
        return [(each.place, each.remark) for each in found]
    return [(each.subject, format_source(each.place) or "-", each.remark) for each in found]


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
        yield _describe_access(
            status,
            _join_names([each.name for each in group]),
            len(group) > 1,
            reason,
            file,
            is_too=own.status == "read",
        )


def _describe_access(status: str, names: str, is_plural: bool, reason: str, file: str, *, is_too: bool) -> str:
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


def _join_names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _explain_in_session(nexus: Nexus, session: str, query: str) -> list[Explanation]:
    from nexus_core.session.provenance import explain_in_session

    record = find_session(nexus.ledger, session)
    context = nexus.assemble(nexus.request(session=record.label), must_fit=False)
    return explain_in_session(nexus.ledger, record, context, query)


def _suggest_setting(query: str) -> str:
    from nexus_core.config.validate import list_settings

    nearest = did_you_mean(query, list_settings())
    return f" {nearest.capitalize()}" if nearest else ""


def _suggest_session(query: str) -> str:
    is_sentence = len(query.split()) >= _MIN_SENTENCE_WORDS
    return " With --session NAME, the messages of a session are searched." if is_sentence else ""


def _explain_default(query: str) -> list[Explanation]:
    from nexus_core.config.validate import get_default, list_settings

    if query not in list_settings():
        return []
    default = get_default(query)
    return [
        Explanation(query, "", "not set; no default" if default is None else f"not set; the default is {default!r}")
    ]
