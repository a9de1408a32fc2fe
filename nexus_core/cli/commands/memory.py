"""`nexus memory search|list|show|add|forget|why`."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.context import EXIT_FINDINGS, load_readable_layers
from nexus_core.cli.input import STANDARD_INPUT, read_input_text
from nexus_core.cli.options import ALL_ITEMS, DryRunOption, FacetOption, JsonOption, build_limit_option
from nexus_core.cli.output import format_time
from nexus_core.cli.session_lookup import LedgerOption, build_session_option, find_session, open_ledger_nexus
from nexus_core.errors import UsageError
from nexus_core.files.places import expand_user
from nexus_core.memory.forgotten_memories import read_forgotten_memories, record_forgotten_memories, restore_forgotten
from nexus_core.memory.recall import (
    build_memory_query,
    diagnose_source,
    list_source,
    memory_to_json,
    read_memory_options,
    search_memories,
)
from nexus_core.request.memories import InjectedMemory, list_injected_memories
from nexus_core.text.console import format_count
from nexus_core.text.safety import shorten, visible_line
from nexus_core.text.secrets import redact
from nexus_core.types.memory import Memory
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.memory.forgotten_memories import ForgottenMemories
    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.memory import MemoryQuery, MemorySource
    from nexus_core.types.plugins import Finding

app = typer.Typer(
    help="Search, add and forget memories.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus memory add 'Deploy on Fridays only.'\n  nexus memory search 'when do we deploy?'",
)

_DEFAULT_LIMIT = 20
_MIN_ID_CHARACTERS, _ID_CHARACTERS = 4, 12
_SHOWN_CHARACTERS = 60
_MAX_FINDINGS = 3
"""Warnings about notes that are printed before the answer of each command."""
_MS_PER_DAY = 86_400_000
_HEADING = ("ID", "KIND", "WHEN", "SOURCE", "TEXT")
AllOption = Annotated[bool, typer.Option("--all", help="Include the memories of all directories.")]
LimitOption = Annotated[int, build_limit_option("List at most N memories.")]
SessionOption = Annotated[str, build_session_option("Only in this session; in all of them by default.")]
WordsArgument = Annotated[str, typer.Argument(metavar="WORDS", help="A question or some words.")]
IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The memory, by its id or the beginning of it, or by its title.")
]

_STEP = "step:"
_TEXT = "that text"
_MAX_STEPS_WITH_TEXT = 10_000
"""Steps of one session that `forget` of a text finds."""
_MAX_QUERIES, _MAX_QUERY_CHARACTERS, _MAX_ANSWERS = 50, 500, 50
"""Queries that `forget` asks again, characters of those that are made of a memory, and answers of each."""


class MemoryCatalog:
    """The memories of a directory, for one command.

    Args:
        cli: The command.
        nexus: Its Nexus.
        everywhere: True for memories of all directories.
    """

    def __init__(self, cli: CliContext, nexus: Nexus, *, everywhere: bool = False) -> None:
        self.nexus = nexus
        self.request = nexus.request()
        self.loaded = cli.load_readable(nexus)
        options = read_memory_options(self.loaded.settings)
        self.options = options._replace(scope="all") if everywhere else options
        self.sources = nexus.host.memory_sources(self.request, self.loaded, nexus.ledger)
        self.forgotten: ForgottenMemories = read_forgotten_memories(self.request.home)

    def build_query(self, text: str = "") -> MemoryQuery:
        """Return the query for a text."""
        return replace(build_memory_query(text, self.options, self.request), limit=ALL_ITEMS)

    def list_all(self, cli: CliContext) -> list[tuple[MemorySource, Memory]]:
        """Return every memory that a source lists, with its source, and print what is left out."""
        found = [(source, memory) for source, memory in self.list_with_forgotten(cli) if not self.forgotten.has(memory)]
        self.print_findings(cli)
        return found

    def list_with_forgotten(self, cli: CliContext) -> list[tuple[MemorySource, Memory]]:
        """Return every memory that a source lists, with its source, also those that were forgotten."""
        found: list[tuple[MemorySource, Memory]] = []
        for name in self.sources:
            source = self.sources.get(name)
            memories, error = list_source(source, self.build_query())
            if error:
                cli.console.warning(visible_line(f"the memory source {name!r} is left out, because {error}"))
            found += ((source, memory) for memory in memories)
        return found

    def print_findings(self, cli: CliContext) -> None:
        """Warn of memories that cannot be used."""
        sources = map(self.sources.get, self.sources)
        _print_findings(cli, [finding for source in sources for finding in diagnose_source(source)])


def _print_findings(cli: CliContext, findings: Sequence[Finding]) -> None:
    listed = findings if len(findings) <= _MAX_FINDINGS + 1 else findings[:_MAX_FINDINGS]
    for finding in listed:
        cli.console.warning(visible_line(f"{finding.place}: {finding.message}" if finding.place else finding.message))
    if len(findings) > len(listed):
        cli.console.warning(f"{len(findings) - len(listed):,} more; `nexus doctor` lists them")


@app.command(
    epilog="\b\nExamples:\n  nexus memory search 'where is the auth middleware?'\n"
    "  nexus memory search deploy --all --facet command"
)
def search(
    ctx: typer.Context,
    words: WordsArgument,
    *,
    everywhere: AllOption = False,
    facet: FacetOption = [],  # noqa: B006 - Typer copies it
    limit: LimitOption = _DEFAULT_LIMIT,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Search all memory sources for words.

    The best match comes first, with the reason for it. What would be injected into a message may be less: a memory that
    covers too little of the message is not, nor is one that the session has read already. Notes and guides have no
    facets: --facet finds turns, and rules of the user.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        found = search_memories(
            nexus.host,
            nexus.request(),
            cli.load_readable(nexus),
            nexus.ledger,
            words,
            limit=limit,
            everywhere=everywhere,
            facets=facet,
        )
    _print_findings(cli, found.findings)
    _print_memories(cli, found.memories, json=json, with_reason=True)


@app.command("list", epilog="\b\nExamples:\n  nexus memory list\n  nexus memory list --all")
def list_memories(
    ctx: typer.Context,
    *,
    everywhere: AllOption = False,
    limit: LimitOption = _DEFAULT_LIMIT,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """List notes, preferences and guides.

    Turns of earlier sessions are not listed: `nexus session list` has them.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        memories = [memory for _, memory in MemoryCatalog(cli, nexus, everywhere=everywhere).list_all(cli)]
    _print_memories(cli, memories[:limit], json=json)
    if not json and len(memories) > limit:
        cli.console.message(f"{len(memories) - limit:,} more; --limit all lists them.")


@app.command(epilog="\b\nExamples:\n  nexus memory show 3fa9c1\n  nexus memory show 3fa9c1 --json")
def show(ctx: typer.Context, name: IdArgument, *, ledger: LedgerOption = "", json: JsonOption = False) -> None:
    """Print a memory with its source."""
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        _, memory = _find_memory(cli, MemoryCatalog(cli, nexus, everywhere=True), name)
    if json:
        cli.console.json({"schema": 1, "memory": memory_to_json(memory)})
        return
    about = [("id", memory.id), ("kind", memory.kind), ("source", memory.place), ("by", memory.origin)]
    about += [("session", memory.session)] if memory.session else []
    about += [("when", when)] if (when := _format_when(memory)) else []
    cli.console.table([(key, visible_line(value)) for key, value in about])
    cli.console.text("")
    cli.console.text(redact(memory.text).text)


@app.command(
    epilog="\b\nExamples:\n  nexus memory add 'Deploy on Fridays only.'\n"
    "  nexus memory add 'Tests need Docker.' --project"
)
def add(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of the note; - reads standard input.")],
    *,
    title: Annotated[str, typer.Option("--title", metavar="WORDS", help="Name the file after these words.")] = "",
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="note or preference.")] = "note",
    source: Annotated[str, typer.Option("--source", metavar="PLACE", help="The step, file or URL it is from.")] = "",
    project: Annotated[bool, typer.Option("--project", help="Write it into .nexus3 of this directory.")] = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Write a note into your own directory, or into the project's.

    A project's notes are meant to be committed. A text with what looks like a secret is refused, and one that is noted
    already is not written again. A note that was forgotten is used again.
    """
    cli: CliContext = ctx.obj
    if kind not in ("note", "preference"):
        raise UsageError(f"a note cannot be of the kind {kind!r}", hint="--kind note, or --kind preference")
    if project and kind == "preference":
        raise UsageError("a project cannot state a preference of the user", hint="leave out --project, or --kind")
    if text == STANDARD_INPUT:
        text = read_input_text(Path(), text)[1]
    if not text.strip():
        raise UsageError("there is nothing to note", hint="nexus memory add 'Deploy on Fridays only.'")
    if counts := redact(text).counts:
        raise UsageError(
            f"the text has what looks like a secret ({', '.join(sorted(counts))}), so it is not written",
            hint="leave the secret out: what is noted is sent to models",
        )
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        view = MemoryCatalog(cli, nexus)
        store = next((each for each in map(view.sources.get, view.sources) if each.add is not None), None)
        if store is None or store.add is None:
            raise UsageError("no memory source can store a note", hint="`nexus plugin info memory` says why")
        origin = Source(uri=source or "caller:", layer="local" if project else "global")
        new = Memory(text=text, kind="preference" if kind == "preference" else "note", source=origin, title=title)
        noted = None if title else _find_noted(cli, view, new)
        path = noted.source.uri if noted else store.add(replace(new, time=time.time_ns() // 1_000_000))
        was_forgotten = any(view.forgotten) and _restore_forgotten(nexus, view, store.name, path, noted)
        view.print_findings(cli)
    if json:
        cli.console.json({"schema": 1, "path": path, "was_forgotten": was_forgotten})
    else:
        cli.console.message(visible_line(f"Already noted in {path}" if noted else f"Noted in {path}"))
        if was_forgotten:
            cli.console.message("It was forgotten before, and is used again.")
        if not view.options.enabled:
            cli.console.message("Memory is off: `nexus config set memory.enabled true --global` has it sent.")


def _find_noted(cli: CliContext, view: MemoryCatalog, new: Memory) -> Memory | None:
    """Return a note with the same text in the same layer, a forgotten one only if there is no other."""
    notes = (memory for _, memory in view.list_with_forgotten(cli) if memory.kind == new.kind and memory.source.is_file)
    same = (each for each in notes if each.text.strip() == new.text.strip() and each.source.layer == new.source.layer)
    return min(same, key=view.forgotten.has, default=None)


def _restore_forgotten(nexus: Nexus, view: MemoryCatalog, source: str, path: str, noted: Memory | None) -> bool:
    """Have a note used again, since adding it is a newer decision than forgetting it. True if it was forgotten."""
    ids = {noted.id} if noted else set[str]()
    if not noted:
        loaded, _ = load_readable_layers(nexus)  # anew: the first note of a project makes a layer of its directory
        sources = nexus.host.memory_sources(view.request, loaded, nexus.ledger)
        memories, _ = list_source(sources.get(source), view.build_query())
        ids = {memory.id for memory in memories if memory.source.uri == path}
    return restore_forgotten(view.request.home, ids=ids, uris={path})


def _find_memory(cli: CliContext, view: MemoryCatalog, name: str) -> tuple[MemorySource, Memory]:
    listed = view.list_all(cli)
    found = {memory.id: (source, memory) for source, memory in listed if memory.id.startswith(name)}
    if not found:
        found = {memory.id: (source, memory) for source, memory in listed if name in (memory.title, memory.source.uri)}
    if len(found) == 1 and name:
        return next(iter(found.values()))
    if found:
        raise UsageError(f"{len(found):,} memories have ids that begin with {name!r}", hint="give more of the id")
    hint = "`nexus memory list --all` prints ids; an episode is a step: `nexus session show` prints its session"
    raise UsageError(f"there is no note, preference or guide {name!r}", hint=hint)


def _print_memories(cli: CliContext, memories: Sequence[Memory], *, json: bool, with_reason: bool = False) -> None:
    if json:
        cli.console.json({"schema": 1, "memories": [memory_to_json(each) for each in memories]})
        return
    if not memories:
        cli.console.message("Nothing found.")
        return
    heading = (*_HEADING, "WHY") if with_reason else _HEADING
    rows = [
        (
            each.id,
            each.kind,
            _format_when(each) or "-",
            visible_line(each.place),
            visible_line(shorten(" ".join(redact(each.text).text.split()), _SHOWN_CHARACTERS)),
            *([visible_line(each.reason)] if with_reason else ()),
        )
        for each in memories
    ]
    cli.console.table([heading, *rows], styles=["bold"])


def _format_when(memory: Memory) -> str:
    """Return when a memory was written; only the date if a file gives no time; "" if it is unknown."""
    if memory.source.is_file and memory.time % _MS_PER_DAY == 0:
        return time.strftime("%Y-%m-%d", time.gmtime(memory.time // 1000)) if memory.time else ""
    return format_time(memory.time) if memory.time else ""


# ---- why ------------------------------------------------------------------------------------------------------------


@app.command(epilog="\b\nExamples:\n  nexus memory why 3fa9c1\n  nexus memory why --session auth-bug")
def why(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[ID]", help="The memory, by its id; all by default.")] = "",
    *,
    session: SessionOption = "",
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Say why a memory is in a session, and where.

    For each memory that was sent: its source, the words that matched, the session, the step that recorded it, and if
    later calls still have it.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        found = [each for each in _list_all_injected(nexus.ledger, session) if each.id.startswith(name)]
    if json:
        cli.console.json({"schema": 1, "injected": [each.to_json() for each in found]})
    elif found:
        rows = [
            (
                each.id,
                visible_line(each.place),
                visible_line(each.reason) or "-",
                visible_line(each.session),
                each.step,
                "yes" if each.is_sent else "no",
            )
            for each in found
        ]
        cli.console.table([("ID", "SOURCE", "WHY", "SESSION", "STEP", "SENT"), *rows], styles=["bold"])
    else:
        cli.console.message(f"No memory {name!r} was sent." if name else "No memory was sent.")
    if not found:
        raise typer.Exit(EXIT_FINDINGS)


def _list_all_injected(ledger: Ledger, session: str = "") -> list[InjectedMemory]:
    records = [find_session(ledger, session)] if session else ledger.sessions(status=None)
    return [each for record in records for each in list_injected_memories(ledger, record)]


# ---- forget ---------------------------------------------------------------------------------------------------------


class ForgetSelection(NamedTuple):
    """Memories that a user asked to forget.

    Attributes:
        what: Its description.
        ids: Ids of memories.
        uris: Steps and files.
        session: The name of the session whose steps these are; "" if no session is meant.
    """

    what: str
    ids: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()
    session: str = ""

    @property
    def steps(self) -> list[str]:
        """The ids of the steps."""
        return sorted(uri.removeprefix(_STEP) for uri in self.uris if uri.startswith(_STEP))


@app.command(
    epilog="\b\nExamples:\n  nexus memory forget 3fa9c1 --dry-run\n  nexus memory forget 'deploy on Fridays' --yes"
)
def forget(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="X", help="A memory, a step, a session, a file, or a text.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Remove memories, and leave them out of later calls.

    Notes are deleted, preferences and guides are not used any more, steps are removed from the search index with the
    summaries made of them, and sessions that were given one leave it out of their next calls. Then the questions that
    found it are asked again. What was recorded in the ledger stays there until you delete the session.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        view = MemoryCatalog(cli, nexus, everywhere=True)
        named = view.list_all(cli)
        asked = _read_target(nexus, target, [memory for _, memory in named])
        matched = [(source, memory) for source, memory in named if _is_meant(memory, asked)]
        injected = _find_injected(nexus.ledger, asked, {memory.id for _, memory in matched}, target)
        sent = [each for each in injected if each.is_sent]
        if not matched and not injected and not asked.uris:
            cli.console.message(visible_line(f"No memory has {target!r}, and no session was given one."))
            raise typer.Exit(EXIT_FINDINGS)
        holders = _find_holders(nexus.ledger, asked, [memory for _, memory in matched])
        report = _describe_forgotten(matched, sent, holders)
        is_done = not dry_run and (yes or _confirm(cli, report))
        queries = _list_queries(nexus.ledger, [memory for _, memory in matched], injected, holders)
        removed = _forget(nexus, view, asked, matched, sent=sent, holders=holders) if is_done else []
        gone = {*asked.ids, *(memory.id for _, memory in matched), *(each.id for each in injected)}
        steps = sorted(step for names in holders.values() for step in names)
        returned = _ask_again(nexus, queries, gone, steps) if is_done else []
    stays = sorted({*holders, *_list_sessions(sent), *filter(None, [asked.session])})
    if json:
        facts = {"schema": 1, "target": asked.what, "dry_run": not is_done, "deleted_files": removed}
        ids = sorted({memory.id for _, memory in matched} | {each.id for each in sent})
        proof = {"queries": len(queries), "still_found": returned} if is_done else {}
        facts |= {"ids": ids, "steps": steps, "sessions": _list_sessions(sent), "stays_in": stays, **proof}
        cli.console.json(facts)
    _print_forgotten(cli, report, stays, is_done=is_done)
    if is_done:
        _print_proof(cli, len(queries), returned)
    if returned:
        raise typer.Exit(EXIT_FINDINGS)


def _read_target(nexus: Nexus, text: str, memories: Sequence[Memory]) -> ForgetSelection:
    """Return what a text names: a memory, a session, a step, a file, else the memories with that text in them."""
    from nexus_core.thread.lookup import find_step

    if not text.strip():
        raise UsageError("there is nothing to forget", hint="name a memory, a step, a session, a file, or a text")
    if _MIN_ID_CHARACTERS <= len(text) <= _ID_CHARACTERS:
        sources = {memory.id: memory.source for memory in memories if memory.id.startswith(text)}
        if not sources:  # an episode is not listed, but sent
            injected = _list_all_injected(nexus.ledger)
            sources = {each.id: each.source for each in injected if each.id.startswith(text)}
        if len(sources) == 1:
            texts = {memory.text.casefold() for memory in memories if memory.id in sources}
            # The user may have stated a rule more than once.
            same = [memory for memory in memories if memory.text.casefold() in texts]
            # The step would be recalled as an episode, with the same words.
            uris = {each.uri for each in (*sources.values(), *(memory.source for memory in same)) if not each.is_file}
            ids = {*sources, *(memory.id for memory in same)}
            return ForgetSelection(f"memory {text}", ids=frozenset(ids), uris=frozenset(uris))
    if (record := nexus.ledger.session(text)) is not None:
        steps = [] if record.tip is None else nexus.ledger.thread(record.tip)
        return ForgetSelection(
            f"session {text}", uris=frozenset(f"{_STEP}{step.id}" for step in steps), session=record.label
        )
    if " " not in text and (step := find_step(nexus.ledger, text.removeprefix(_STEP))) is not None:
        # A rendered message repeats the user's, which is the one that is found.
        names = {step.id, step.turn} if step.kind == "sealed" else {step.id}
        return ForgetSelection(f"step {step.id}", uris=frozenset(f"{_STEP}{name}" for name in names))
    path = str((nexus.cwd / expand_user(text)).resolve()) if "\n" not in text else ""
    uris = {memory.source.uri for memory in memories if memory.source.is_file}
    for name in (text, path):
        if name in uris:
            return ForgetSelection(f"file {name}", uris=frozenset([name]))
    with_text = [memory for memory in memories if text.casefold() in memory.text.casefold()]
    found = {memory.source.uri for memory in with_text if not memory.source.is_file}
    if len(text) >= _MIN_ID_CHARACTERS:  # a few letters are in nearly every step
        found |= {f"{_STEP}{step.id}" for step in _find_steps_with(nexus, text)}
    return ForgetSelection(_TEXT, ids=frozenset(memory.id for memory in with_text), uris=frozenset(found))


def _find_steps_with(nexus: Nexus, text: str) -> Iterator[Step]:
    """Yield the steps of all sessions that have a text: as it is written, and in other case if a search finds them."""
    from nexus_core.ledger.ledger import find_message_texts
    from nexus_core.ledger.search import search_session

    ledger = nexus.ledger
    for record in ledger.sessions(status=None):
        yield from search_session(ledger, record, text, limit=_MAX_STEPS_WITH_TEXT)
    for hit in nexus.search(text, limit=_MAX_STEPS_WITH_TEXT, snippet_characters=1).hits:
        step = ledger.step(hit.step)
        texts = [each for message in step.messages for each in find_message_texts(message)] if step else []
        if step is not None and any(text.casefold() in each.casefold() for each in texts):
            yield step


def _is_meant(memory: Memory, asked: ForgetSelection) -> bool:
    return memory.id in asked.ids or memory.source.uri in asked.uris


def _find_injected(ledger: Ledger, asked: ForgetSelection, ids: Collection[str], text: str) -> list[InjectedMemory]:
    """Return the memories to forget that sessions were given."""
    meant = {*asked.ids, *ids}
    return [
        each
        for each in _list_all_injected(ledger)
        if each.id in meant
        or each.source.uri in asked.uris
        # An episode quotes the question that it answers, or the answer, with its step.
        or not asked.uris.isdisjoint(_STEP_REFERENCE.findall(sent := _read_sent_text(ledger, each)))
        or (asked.what == _TEXT and text.casefold() in sent.casefold())
    ]


_STEP_REFERENCE = re.compile(r"step:\w+")


def _read_sent_text(ledger: Ledger, injected: InjectedMemory) -> str:
    """Return the part of a message that holds a memory; "" if it cannot be found there."""
    from nexus_core.request.input import read_section_entries
    from nexus_core.request.prefix import read_sections
    from nexus_core.types.payloads import RenderedPayload

    step = ledger.step(injected.step)
    if step is None or not isinstance(step.payload, RenderedPayload):
        return ""
    for entry in read_section_entries(list(step.payload.section_entries)) if step.messages else ():
        if entry.id.endswith(injected.id) and entry.span is not None:
            start, end = entry.span
            return step.messages[0].content[start:end]
    content = ledger.blob(step.payload.memories) if step.payload.memories else None
    sections = () if content is None else read_sections(content)
    return next((section.text for section in sections if section.id.endswith(injected.id)), "")


def _find_holders(ledger: Ledger, asked: ForgetSelection, memories: Sequence[Memory]) -> dict[str, list[str]]:
    """Return the steps to take out of the index by the name of a session that has them, with the summaries of them."""
    from nexus_core.thread.lookup import is_in_thread

    names = {*asked.steps, *(each.source.uri.removeprefix(_STEP) for each in memories if not each.source.is_file)}
    steps = [step for name in sorted(names) if (step := ledger.step(name)) is not None]
    found: dict[str, list[str]] = {}
    known: set[str] = set()
    for record in ledger.sessions(status=None):
        tip = None if record.tip is None else ledger.step(record.tip)
        inside = [] if tip is None else [step for step in steps if is_in_thread(ledger, step, tip)]
        if not inside or tip is None:
            continue
        oldest = min(step.position for step in inside)
        here = [step.id for step in inside] + [each.id for each in _list_compactions(ledger, tip, oldest)]
        if new := [name for name in here if name not in known]:
            found[record.label] = list(dict.fromkeys(new))
            known.update(new)
    return found


def _list_compactions(ledger: Ledger, tip: Step, position: int) -> Iterator[Step]:
    """Yield the summaries in a thread that were made after a position, the newest first: they repeat earlier steps."""
    step: Step | None = tip
    while step is not None and step.compaction is not None:
        compaction = ledger.step(step.compaction)
        if compaction is None or compaction.position <= position:
            return
        yield compaction
        step = None if compaction.parent is None else ledger.step(compaction.parent)


def _forget(
    nexus: Nexus,
    view: MemoryCatalog,
    asked: ForgetSelection,
    matched: Sequence[tuple[MemorySource, Memory]],
    *,
    sent: Sequence[InjectedMemory],
    holders: Mapping[str, Sequence[str]],
) -> list[str]:
    """Delete, record and leave out what is forgotten. Return the deleted files."""
    removed = [source.remove(memory) for source, memory in matched if source.remove is not None]
    ids = {*asked.ids, *(memory.id for _, memory in matched), *(each.id for each in sent)}
    uris = {each.source.uri for each in sent} | (set() if asked.session else asked.uris)
    record_forgotten_memories(
        view.request.home,
        when=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        what=asked.what,
        ids=ids,
        # Another note may have the name of a deleted one some day.
        uris=uris - set(removed),
        removed=removed,
        calls=_list_sessions(sent),
    )
    for label in sorted({*_list_sessions(sent), *holders}):
        session = nexus.session(label, any_directory=True)
        session.forget_memories([each.id for each in sent if each.session == label], steps=holders.get(label, ()))
    return removed


def _list_sessions(sent: Iterable[InjectedMemory]) -> list[str]:
    return sorted({each.session for each in sent})


def _describe_forgotten(
    matched: Sequence[tuple[MemorySource, Memory]],
    sent: Sequence[InjectedMemory],
    holders: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return a line for each thing that is removed."""
    lines = [
        f"{memory.kind} {memory.place}: {'deleted' if source.remove else 'not used any more'}"
        for source, memory in matched
    ]
    lines += [
        f"session {label}: {format_count(len(steps), 'step')} removed from the search index"
        for label, steps in holders.items()
    ]
    return lines + [f"session {label}: left out of its next calls" for label in _list_sessions(sent)]


def _confirm(cli: CliContext, report: Sequence[str]) -> bool:
    if not cli.can_ask:
        hint = "look at it with --dry-run, then pass --yes"
        raise UsageError("there is no terminal to ask on, so nothing was forgotten", hint=hint)
    for line in report:
        cli.console.message(visible_line(line))
    return cli.agrees("Forget it?")


def _print_forgotten(cli: CliContext, report: Sequence[str], stays: Sequence[str], *, is_done: bool) -> None:
    cli.console.message(f"{'Forgotten' if is_done else 'Would be forgotten'}: {format_count(len(report), 'place')}.")
    for line in report:
        cli.console.message(visible_line(f"  {line}"))
    for label in stays:
        what = f"the recorded steps of session {label} stay in the ledger"
        cli.console.warning(visible_line(f"{what}; `nexus session delete {quote(label)}` erases them"))


# ---- proof ----------------------------------------------------------------------------------------------------------


class RecordedQuery(NamedTuple):
    """A text that finds a memory: a user message that it was recalled for, or the words of the memory itself."""

    text: str
    session: str = ""


def _list_queries(
    ledger: Ledger,
    memories: Sequence[Memory],
    injected: Sequence[InjectedMemory],
    holders: Mapping[str, Sequence[str]],
) -> list[RecordedQuery]:
    """Return the messages that memories were recalled for, and the beginnings of the memories."""
    found: dict[RecordedQuery, None] = {}
    for each in injected:
        recorded = ledger.step(each.step)
        step = None if recorded is None else ledger.step(recorded.turn)
        if step is not None and step.messages and step.messages[0].content.strip():
            found[RecordedQuery(step.messages[0].content, each.session)] = None
    steps = [ledger.step(name) for names in holders.values() for name in names[:_MAX_QUERIES]]
    texts = [step.messages[0].content for step in steps if step is not None and step.messages]
    for text in [*(memory.text for memory in memories), *texts]:
        if text.strip():
            found[RecordedQuery(text[:_MAX_QUERY_CHARACTERS])] = None
    return [*found][:_MAX_QUERIES]


def _ask_again(
    nexus: Nexus, queries: Sequence[RecordedQuery], ids: Collection[str], steps: Collection[str]
) -> list[str]:
    """Ask queries again, and return the memories and steps among the answers that were to be forgotten."""
    found: set[str] = set()
    for query in queries:
        recalled = nexus.recall(query.text, session=query.session, limit=_MAX_ANSWERS, everywhere=True).memories
        found |= {each.id for each in recalled if each.id in ids or each.source.uri.removeprefix(_STEP) in steps}
        found |= {hit.step for hit in nexus.search(query.text, limit=_MAX_ANSWERS).hits if hit.step in steps}
    return sorted(found)


def _print_proof(cli: CliContext, queries: int, returned: Sequence[str]) -> None:
    if returned:
        cli.console.warning(f"{format_count(queries, 'question')} asked again, and found: {', '.join(returned)}")
    elif queries:
        cli.console.message(f"{format_count(queries, 'question')} that could find it asked again: none does.")
