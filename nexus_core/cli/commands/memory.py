"""`nexus memory search|list|show|add|forget|why`."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from functools import cache, cached_property
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
from nexus_core.memory.distinctive_words import find_distinctive_words
from nexus_core.memory.forgotten_memories import read_forgotten_memories, record_forgotten_memories, restore_forgotten
from nexus_core.memory.recall import (
    build_memory_query,
    diagnose_source,
    list_source,
    memory_to_json,
    read_memory_options,
    search_memories,
)
from nexus_core.memory.words import find_query_words
from nexus_core.request.memories import InjectedMemory, list_injected_memories
from nexus_core.text.console import format_count
from nexus_core.text.safety import shorten, visible_line
from nexus_core.text.secrets import redact
from nexus_core.types.memory import Memory, compute_memory_id
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.memory.distinctive_words import DistinctiveWords
    from nexus_core.memory.forgotten_memories import ForgottenMemories
    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.memory import MemoryOrigin, MemoryQuery, MemorySource
    from nexus_core.types.plugins import Finding

app = typer.Typer(
    help="Search, add and forget memories.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus memory add 'Deploy on Fridays only.'\n  nexus memory search 'when do we deploy?'",
)

_DEFAULT_LIMIT = 20
_ID = re.compile("[0-9a-f]{4,12}")
"""The id of a memory, or a beginning of it."""
_MIN_EPISODE_ID_CHARACTERS = 8
"""Fewer characters of the id of an episode or a step would match too many steps, or be a word."""
_MIN_TEXT_LETTERS = 4
"""Letters and digits of a text to forget: a few are in nearly every step."""
_FIRST_UNSPACED = "\u0e00"
"""The first character of the scripts that are written without spaces."""
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
    str, typer.Argument(metavar="ID", help="The memory, by its id, its title, its file, or its step.")
]

_STEP = "step:"
_MAX_STEPS_WITH_TEXT = 10_000
"""Steps of one session that `forget` of a text finds."""
_MAX_LISTED_STEPS = 5
"""Steps of one session that `forget` prints."""
_MAX_REPEATED = 20
"""Places that `forget` prints because they may still say the same."""
_MAX_FACTS = 20
"""Texts with which `forget` compares what is found."""
_COMMON_TURNS, _MAX_COUNTED_TURNS = 10, 100
"""Turns that have a word if it says little about a text, and turns that are looked at to count them."""
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
        memory = _find_memory(cli, MemoryCatalog(cli, nexus, everywhere=True), name)
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


def _find_memory(cli: CliContext, view: MemoryCatalog, name: str) -> Memory:
    """Return the memory with an id that a command prints, a title, a file or a step.

    Raises:
        UsageError: There is none, there are several, or it was forgotten.
    """
    listed, given = [memory for _, memory in view.list_all(cli)], GivenMemories(view.nexus.ledger)
    found = [each for each in listed if name in (each.title, each.source.uri)]
    if ids := _find_by_id(given.ledger, name, listed, given):
        built = (given.build_memory(*each) for each in ids.items())
        found = [each for each in listed if each.id in ids] or [each for each in built if each]
    elif not found and (path := _find_named_file(view.nexus, name, {each.source.uri for each in listed})):
        found = [each for each in listed if each.source.uri == path]
    elif len(found) != 1 and (step := _find_named_step(given.ledger, name)) is not None:
        episode = given.build_memory("", Source(uri=f"{_STEP}{step.id}"))
        found = [episode] if episode else []
    if len(found) > 1:
        raise UsageError(f"{len(found):,} memories are called {name!r}", hint="`nexus memory list --all` prints ids")
    if not found:
        hint = "`nexus memory list --all` and `nexus memory search` print ids"
        raise UsageError(f"there is no memory {name!r}", hint=hint)
    if view.forgotten.has(found[0]):
        raise UsageError(f"the memory {name!r} was forgotten", hint="`nexus session show` prints recorded steps")
    return found[0]


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
        text: The text that they have; "" if they are named otherwise.
    """

    what: str
    ids: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()
    session: str = ""
    text: str = ""

    @property
    def steps(self) -> frozenset[str]:
        """The ids of the steps."""
        return frozenset(uri.removeprefix(_STEP) for uri in self.uris if uri.startswith(_STEP))


class ForgetPlan(NamedTuple):
    """Everything that is removed with what a user asked to forget.

    Attributes:
        asked: What the user asked for.
        matched: Memories that sources list.
        injected: Memories that sessions were given, also those that later calls do not have any more.
        holders: The steps to take out of the index by the name of a session that has them.
        facts: The words of what is forgotten.
        queries: Texts that find it, each with the question that it asks: user messages that it was recalled for, and
            its own words, which ask nothing.
    """

    asked: ForgetSelection
    matched: Sequence[tuple[MemorySource, Memory]]
    injected: Sequence[InjectedMemory]
    holders: Mapping[str, Sequence[Step]]
    facts: Sequence[DistinctiveWords]
    queries: Mapping[str, str]

    @property
    def sent(self) -> list[InjectedMemory]:
        """The memories that later calls of sessions would have."""
        return [each for each in self.injected if each.is_sent]

    @property
    def steps(self) -> set[str]:
        """The ids of the steps to take out of the index."""
        return {step.id for steps in self.holders.values() for step in steps}

    @property
    def uris(self) -> set[str]:
        """The steps and files of which no memory is used."""
        return set(self.asked.uris) | {f"{_STEP}{step}" for step in self.steps}

    @property
    def ids(self) -> set[str]:
        """The ids of the memories that must not return: one that only quotes a forgotten step may, without it."""
        meant = {each.id for each in self.injected if each.id in self.asked.ids or each.source.uri in self.uris}
        files = {each.id for each in self.injected if each.source.is_file}
        return {*self.asked.ids, *(memory.id for _, memory in self.matched), *meant, *files}

    def describe(self) -> list[list[str]]:
        """Return a line for each place from which something is removed, with lines of details."""
        places = [
            [
                f"{memory.kind} {memory.place}: {'deleted' if source.remove else 'not used any more'}",
                _excerpt(memory.text),
            ]
            for source, memory in self.matched
        ]
        for label, steps in self.holders.items():
            listed = [f"{_STEP}{step.id}: {_excerpt(_read_step_text(step))}" for step in steps[:_MAX_LISTED_STEPS]]
            more = [f"{len(steps) - len(listed):,} more"] if len(steps) > len(listed) else []
            places.append(
                [f"session {label}: {format_count(len(steps), 'step')} removed from the search index", *listed, *more]
            )
        for label in _list_sessions(self.sent):
            given = dict.fromkeys(f"{each.title}, {each.place}" for each in self.sent if each.session == label)
            places.append([f"session {label}: left out of its next calls", *given])
        return places


@app.command(
    epilog="\b\nExamples:\n  nexus memory forget 3fa9c1 --dry-run\n  nexus memory forget 'deploy on Fridays' --yes"
)
def forget(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="X", help="A memory, a step, a session, a note, or a text.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Remove memories, and leave them out of later calls.

    Notes are deleted, preferences and guides are not used any more, steps are removed from the search index with the
    summaries made of them, and sessions that were given one leave it out of their next calls. Replies to messages that
    had it and that share its distinctive words are removed, too. Then the questions that found it are asked again, and
    places that may still say it are named. What was recorded in the ledger stays there until you delete the session.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        view = MemoryCatalog(cli, nexus, everywhere=True)
        named = view.list_all(cli)
        given = GivenMemories(nexus.ledger)
        asked = _read_target(nexus, target, [memory for _, memory in named], given)
        if asked.text and _is_path(nexus, target):
            cli.console.warning(visible_line(f"{target!r} is not a note, so it is a text that memories may have"))
        plan = _build_plan(nexus, given, asked, named)
        if not plan.matched and not plan.injected and not asked.uris:
            cli.console.message(visible_line(f"No memory has {target!r}, and no session was given one."))
            raise typer.Exit(EXIT_FINDINGS)
        is_done = not dry_run and (yes or _confirm(cli, plan))
        removed = _forget(nexus, view, plan) if is_done else []
        proof = _ask_again(nexus, given, plan) if is_done else ForgetProof()
    stays = sorted({*plan.holders, *_list_sessions(plan.sent), *filter(None, [asked.session])})
    if json:
        facts = {"schema": 1, "target": asked.what, "dry_run": not is_done, "deleted_files": removed}
        ids = sorted({memory.id for _, memory in plan.matched} | {each.id for each in plan.sent})
        facts |= {"ids": ids, "steps": sorted(plan.steps), "sessions": _list_sessions(plan.sent), "stays_in": stays}
        if is_done:
            facts |= {"queries": len(plan.queries), "still_found": proof.returned, "may_repeat": [*proof.repeated]}
        cli.console.json(facts)
    if is_done or dry_run:
        _print_forgotten(cli, plan, stays, is_done=is_done, has_asked=is_done and not yes)
    else:
        cli.console.message("Nothing was forgotten.")
    if is_done:
        _print_proof(cli, len(plan.queries), proof)
    if proof.returned or proof.repeated:
        raise typer.Exit(EXIT_FINDINGS)


def _read_target(nexus: Nexus, name: str, memories: Sequence[Memory], given: GivenMemories) -> ForgetSelection:
    """Return what a text names: a memory, a session, a step, a note, else the memories with that text in them.

    Raises:
        UsageError: It is empty, names several memories, or is too short for a text.
    """
    text = name.strip()
    if not text:
        raise UsageError("there is nothing to forget", hint="name a memory, a step, a session, a note, or a text")
    if found := _find_by_id(nexus.ledger, text, memories, given):
        texts = {memory.text.casefold() for memory in memories if memory.id in found}
        # The user may have stated a rule more than once.
        same = [memory for memory in memories if memory.text.casefold() in texts]
        # The step would be recalled as an episode, with the same words.
        uris = {each.uri for each in (*found.values(), *(memory.source for memory in same)) if not each.is_file}
        episodes = {each.uri for each in found.values() if not texts and each.uri.startswith(_STEP)}
        answers = (_find_answer(nexus.ledger, uri.removeprefix(_STEP)) for uri in episodes)
        uris |= {f"{_STEP}{answer.id}" for answer in answers if answer}
        ids = {*found, *(memory.id for memory in same)}
        return ForgetSelection(f"memory {text}", ids=frozenset(ids), uris=frozenset(uris))
    if (record := nexus.ledger.session(text)) is not None:
        steps = [] if record.tip is None else nexus.ledger.thread(record.tip)
        uris = {f"{_STEP}{step.id}" for step in steps}
        return ForgetSelection(f"session {text}", uris=frozenset(uris), session=record.label)
    if (step := _find_named_step(nexus.ledger, text)) is not None:
        # A rendered message repeats the user's, which is the one that is found.
        names = {step.id, step.turn} if step.kind == "sealed" else {step.id}
        return ForgetSelection(f"step {step.id}", uris=frozenset(f"{_STEP}{name}" for name in names))
    sources = [*(memory.source for memory in memories), *(each.source for each in given.every)]
    files = {source.uri for source in sources if source.is_file}
    if path := _find_named_file(nexus, text, files):
        return ForgetSelection(f"file {path}", uris=frozenset([path]))
    if sum(map(str.isalnum, text)) < (_MIN_TEXT_LETTERS if text.isascii() else 2) or not find_query_words(text):
        what = f"{text!r} is no id, and as a text it would be found nearly everywhere"
        raise UsageError(what, hint="give an id, `step:…`, a session, the file of a note, or a longer text")
    has_text = _build_matcher(text)
    ids = {memory.id for memory in memories if has_text(memory.text)}
    uris = {memory.source.uri for memory in memories if memory.id in ids and not memory.source.is_file}
    uris |= {f"{_STEP}{step.id}" for step in _find_steps_with(nexus, text, has_text)}
    return ForgetSelection("that text", ids=frozenset(ids), uris=frozenset(uris), text=text)


def _find_by_id(ledger: Ledger, name: str, memories: Iterable[Memory], given: GivenMemories) -> dict[str, Source]:
    """Return the source of the memory with an id, or with a beginning of it, by its id; nothing if there is none.

    Raises:
        UsageError: Several memories have an id with that beginning.
    """
    if not _ID.fullmatch(name):
        return {}
    found = {memory.id: memory.source for memory in memories if memory.id.startswith(name)}
    found = found or {each.id: each.source for each in given.every if each.id.startswith(name)}
    if not found and len(name) >= _MIN_EPISODE_ID_CHARACTERS:  # an episode that no session was given yet
        steps = {compute_memory_id(f"{_STEP}{step.id}"): step for step in ledger.steps()}
        found = {id_: Source(uri=f"{_STEP}{step.id}") for id_, step in steps.items() if id_.startswith(name)}
    if len(found) > 1:
        raise UsageError(f"{len(found):,} memories have ids that begin with {name!r}", hint="give more of the id")
    return found


def _find_named_step(ledger: Ledger, name: str) -> Step | None:
    """Return the step that `step:` with a part of its id names, or a long part alone.

    Raises:
        UsageError: There is no such step, or there are several.
    """
    from nexus_core.thread.lookup import find_step

    part = name.removeprefix(_STEP)
    if part == name and (" " in name or len(name) < _MIN_EPISODE_ID_CHARACTERS):
        return None
    step = find_step(ledger, part)
    if step is None and part != name:
        raise UsageError(f"there is no step {part!r}", hint="`nexus memory search` prints steps")
    return step


def _find_named_file(nexus: Nexus, name: str, files: Collection[str]) -> str:
    """Return the file of a note by its path, as commands print it, or by its name; "" if there is none.

    Raises:
        UsageError: Several notes have that name.
    """
    if "\n" in name:
        return ""
    bare = re.sub(r":\d+-\d+\Z", "", name)  # the lines of a note
    path = nexus.cwd / expand_user(bare)
    for each in (str(path), os.path.normpath(path), str(path.resolve())):
        if each in files:
            return each
    found = sorted(path for path in files if Path(path).name == bare)
    if len(found) > 1:
        raise UsageError(f"{len(found):,} notes are called {bare!r}: {', '.join(found)}", hint="give the path of one")
    return found[0] if found else ""


def _is_path(nexus: Nexus, name: str) -> bool:
    is_name = "\n" not in name and " " not in name.strip()
    return is_name and ("/" in name or os.path.exists(nexus.cwd / name))  # noqa: PTH110 - Path.exists may raise


def _build_matcher(text: str) -> Callable[[str], bool]:
    """Return a function that is true for texts with these whole words, in any case, with any white space between."""
    words = text.casefold().split()
    # Scripts without spaces have no word boundaries.
    before = r"(?<!\w)" if words[0][0].isalnum() and words[0][0] < _FIRST_UNSPACED else ""
    after = r"(?!\w)" if words[-1][-1].isalnum() and words[-1][-1] < _FIRST_UNSPACED else ""
    pattern = re.compile(before + r"\s+".join(map(re.escape, words)) + after)
    return lambda other: pattern.search(other.casefold()) is not None


def _find_steps_with(nexus: Nexus, text: str, has_text: Callable[[str], bool]) -> Iterator[Step]:
    """Yield the steps of all sessions that have a text: as it is written, and in other case if a search finds them."""
    from nexus_core.ledger.search import search_session

    ledger = nexus.ledger
    for record in ledger.sessions(status=None):
        found = search_session(ledger, record, text, limit=_MAX_STEPS_WITH_TEXT)
        # A rendered message has the text of what is injected.
        yield from (step for step in found if step.kind != "sealed" and has_text(_read_step_text(step)))
    for hit in nexus.search(text, limit=_MAX_STEPS_WITH_TEXT, snippet_characters=1).hits:
        step = ledger.step(hit.step)
        if step is not None and has_text(_read_step_text(step)):
            yield step


def _read_step_text(step: Step) -> str:
    from nexus_core.ledger.ledger import find_message_texts

    return "\n".join(text for message in step.messages for text in find_message_texts(message))


def _find_answer(ledger: Ledger, name: str) -> Step | None:
    """Return the reply that an episode quotes after its question; None if its step asks nothing."""
    from nexus_core.thread.lookup import find_turn_steps

    step = ledger.step(name)
    if step is None or not step.messages or not step.messages[0].content.rstrip().endswith("?"):
        return None
    later = (each for each in find_turn_steps(ledger, step) if each.messages and each.position > step.position)
    following = next((each for each in later if each.kind != "sealed"), None)
    return following if following is not None and following.messages[0].role == "assistant" else None


def _excerpt(text: str) -> str:
    """Return the first words of a text, redacted, for a line."""
    return shorten(" ".join(redact(text).text.split()), _SHOWN_CHARACTERS)


_STEP_REFERENCE = re.compile(r"step:\w+")


class GivenMemories:
    """The memories that sessions were given, and the steps that came after them.

    Args:
        ledger: The ledger.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._texts: dict[InjectedMemory, str] = {}
        self._threads: dict[str, list[Step]] = {}

    @cached_property
    def every(self) -> list[InjectedMemory]:
        """All of them."""
        return _list_all_injected(self.ledger)

    def find(
        self, ids: Collection[str], uris: Collection[str], has_text: Callable[[str], bool] | None
    ) -> list[InjectedMemory]:
        """Return those with an id, from a step or file, that quote a step, or have a text."""
        return [
            each
            for each in self.every
            if each.id in ids
            or each.source.uri in uris
            # An episode quotes the question that it answers, or the answer, with its step.
            or not self.find_quoted(each).isdisjoint(uris)
            or (has_text is not None and has_text(self.read_text(each)))
        ]

    def find_quoted(self, injected: InjectedMemory) -> set[str]:
        """Return the steps that a memory quotes, its own included."""
        if injected.source.is_file:
            return set()
        return {injected.source.uri, *_STEP_REFERENCE.findall(self.read_text(injected))}

    def read_text(self, injected: InjectedMemory) -> str:
        """Return the text of a memory as it was sent; "" if it cannot be found."""
        if injected not in self._texts:
            self._texts[injected] = _read_sent_text(self.ledger, injected)
        return self._texts[injected]

    def build_memory(self, id_: str, source: Source) -> Memory | None:
        """Return an episode with the whole text of its step, or a memory that no source lists, as it was sent.

        None if its text cannot be found.
        """
        if not source.uri.startswith(_STEP):
            sent = next((each for each in self.every if each.id == id_ and self.read_text(each)), None)
            return sent and Memory(text=self.read_text(sent), kind="note", source=source, origin="file")
        step = self.ledger.step(source.uri.removeprefix(_STEP))
        text = "" if step is None else _read_step_text(step)
        if step is None or not text:
            return None
        if answer := _find_answer(self.ledger, step.id):
            text = f"{text}\nAnswered ({_STEP}{answer.id}): {_read_step_text(answer)}"
        session = next((each.label for each in self.ledger.sessions(status=None) if self._has_step(each, step)), "")
        role = step.messages[0].role
        origin: MemoryOrigin = "user" if role == "user" else "assistant" if role == "assistant" else "tool"
        return Memory(text=text, kind="episode", source=source, origin=origin, session=session, time=step.created)

    def _has_step(self, record: SessionRecord, step: Step) -> bool:
        from nexus_core.thread.lookup import is_in_thread

        tip = None if record.tip is None else self.ledger.step(record.tip)
        return tip is not None and is_in_thread(self.ledger, step, tip)

    def find_turn(self, injected: InjectedMemory) -> Step | None:
        """Return the user message that a memory was recalled for."""
        recorded = self.ledger.step(injected.step)
        return None if recorded is None else self.ledger.step(recorded.turn)

    def find_later_steps(self, injected: Iterable[InjectedMemory], *, is_reply: bool) -> Iterator[Step]:
        """Yield the replies of turns that were given a memory, or the steps of later turns of their sessions."""
        first: dict[str, int] = {}
        turns = set()
        for each in injected:
            turn = self.find_turn(each)
            if turn is not None:
                turns.add(turn.id)
                first[each.session] = min(turn.position, first.get(each.session, turn.position))
        for label, position in first.items():
            for step in self._read_thread(label):
                is_after = step.position > position and step.messages and step.kind not in ("sealed", "forget")
                if is_after and (step.turn in turns and step.id != step.turn) == is_reply:
                    yield step

    def _read_thread(self, label: str) -> list[Step]:
        if label not in self._threads:
            record = self.ledger.session(label)
            self._threads[label] = [] if record is None or record.tip is None else self.ledger.thread(record.tip)
        return self._threads[label]


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


def _build_plan(
    nexus: Nexus, given: GivenMemories, asked: ForgetSelection, named: Sequence[tuple[MemorySource, Memory]]
) -> ForgetPlan:
    """Return everything to remove: what is asked for, and the replies of sessions that were given it and repeat it.

    A reply may have been a memory of another session, whose reply repeats it again.
    """
    ledger = nexus.ledger
    matched = [(source, each) for source, each in named if each.id in asked.ids or each.source.uri in asked.uris]
    ids = {*asked.ids, *(memory.id for _, memory in matched)}
    uris = {*asked.uris, *(memory.source.uri for _, memory in matched)}
    has_text = _build_matcher(asked.text) if asked.text else None

    def spread(repeats: Callable[[Step], bool]) -> tuple[list[InjectedMemory], set[str]]:
        reached = set(uris)
        while True:
            injected = given.find(ids, reached, has_text)
            replies = given.find_later_steps(injected, is_reply=True)
            new = {name for step in replies if (name := f"{_STEP}{step.id}") not in reached and repeats(step)}
            if not new:
                return injected, reached
            reached |= new

    facts = _find_facts(nexus, given, asked, [memory for _, memory in matched], spread(lambda _step: True)[0])
    injected, reached = spread(lambda step: _is_shared(ledger, facts, step))
    holders = _find_holders(ledger, {uri.removeprefix(_STEP) for uri in reached if uri.startswith(_STEP)})
    turns = [turn for each in injected if (turn := given.find_turn(each)) is not None and turn.messages]
    steps = [step for held in holders.values() for step in held[:_MAX_QUERIES]]
    own = [*(memory.text for _, memory in matched), *(step.messages[0].content for step in steps)]
    queries = {text[:_MAX_QUERY_CHARACTERS]: "" for text in own}
    queries |= {text: text for turn in turns if (text := turn.messages[0].content)}
    asked_again = dict([(text, queries[text]) for text in reversed(queries) if text.strip()][:_MAX_QUERIES])
    return ForgetPlan(asked, matched, injected, holders, facts, asked_again)


def _find_facts(
    nexus: Nexus,
    given: GivenMemories,
    asked: ForgetSelection,
    memories: Iterable[Memory],
    injected: Iterable[InjectedMemory],
) -> list[DistinctiveWords]:
    """Return the distinctive words of what is forgotten.

    Args:
        nexus: The Nexus.
        given: The memories that sessions were given.
        asked: What the user asked for.
        memories: The memories to forget.
        injected: The memories that may have spread it: turns that were given them do not make its words common.
    """
    own = {turn.id for each in injected if (turn := given.find_turn(each))}
    quoted = {uri for each in injected for uri in given.find_quoted(each)}
    is_single = not asked.session and not asked.text
    names = [name for name in sorted(asked.steps) if is_single or f"{_STEP}{name}" in quoted]
    steps = [step for name in names[:_MAX_FACTS] if (step := nexus.ledger.step(name))]
    texts = [asked.text, *(memory.text for memory in memories), *map(_read_step_text, steps)]

    @cache
    def is_common(word: str) -> bool:
        hits = nexus.search(word, limit=min(_MAX_COUNTED_TURNS, _COMMON_TURNS + 2 * len(own) + len(asked.uris))).hits
        others = {hit.turn for hit in hits if hit.words and hit.turn not in own and hit.step not in asked.steps}
        return len(others) >= _COMMON_TURNS

    facts = [text for text in dict.fromkeys(texts) if text.strip()]
    return [find_distinctive_words(text, is_common) for text in facts[:_MAX_FACTS]]


def _is_shared(ledger: Ledger, facts: Iterable[DistinctiveWords], step: Step) -> bool:
    """True if a reply to a message with a memory has words of it that the user's message does not have."""
    question, text = _read_question(ledger, step), _read_step_text(step)
    return any(fact.occur_in(text, question) for fact in facts)


def _read_question(ledger: Ledger, step: Step) -> str:
    """Return the user message of the turn of a reply; "" for that message itself."""
    turn = ledger.step(step.turn) if step.turn != step.id else None
    return "" if turn is None else _read_step_text(turn)


def _find_holders(ledger: Ledger, names: Collection[str]) -> dict[str, list[Step]]:
    """Return the steps to take out of the index by the name of a session that has them, with the summaries of them."""
    from nexus_core.thread.lookup import is_in_thread

    found_steps = (ledger.step(name) for name in sorted(names))
    steps = [step for step in found_steps if step is not None and step.messages and step.kind != "sealed"]
    found: dict[str, list[Step]] = {}
    known: set[str] = set()
    for record in ledger.sessions(status=None):
        tip = None if record.tip is None else ledger.step(record.tip)
        inside = [] if tip is None else [step for step in steps if is_in_thread(ledger, step, tip)]
        if not inside or tip is None:
            continue
        here = {each.id: each for each in (*inside, *_list_compactions(ledger, tip, min(s.position for s in inside)))}
        if new := [step for name, step in here.items() if name not in known]:
            found[record.label] = new
            known.update(here)
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


def _forget(nexus: Nexus, view: MemoryCatalog, plan: ForgetPlan) -> list[str]:
    """Delete, record and leave out what is forgotten. Return the deleted files."""
    removed = [source.remove(memory) for source, memory in plan.matched if source.remove is not None]
    # The index of a session's steps names them already.
    uris = plan.uris - plan.asked.uris if plan.asked.session else plan.uris
    record_forgotten_memories(
        view.request.home,
        when=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        what=plan.asked.what,
        ids=plan.ids,
        # Another note may have the name of a deleted one some day.
        uris=uris - set(removed),
        removed=removed,
        calls=_list_sessions(plan.sent),
    )
    for label in sorted({*_list_sessions(plan.sent), *plan.holders}):
        session = nexus.session(label, any_directory=True)
        steps = [step.id for step in plan.holders.get(label, ())]
        session.forget_memories([each.id for each in plan.sent if each.session == label], steps=steps)
    return removed


def _list_sessions(sent: Iterable[InjectedMemory]) -> list[str]:
    return sorted({each.session for each in sent})


def _confirm(cli: CliContext, plan: ForgetPlan) -> bool:
    if not cli.can_ask:
        hint = "look at it with --dry-run, then pass --yes"
        raise UsageError("there is no terminal to ask on, so nothing was forgotten", hint=hint)
    _print_places(cli, plan)
    return cli.agrees("Forget it?")


def _print_places(cli: CliContext, plan: ForgetPlan) -> None:
    for place, *details in plan.describe():
        cli.console.message(visible_line(f"  {place}"))
        for detail in details:
            cli.console.message(visible_line(f"    {detail}"))


def _print_forgotten(
    cli: CliContext, plan: ForgetPlan, stays: Sequence[str], *, is_done: bool, has_asked: bool
) -> None:
    count = format_count(len(plan.describe()), "place")
    cli.console.message(f"{'Forgotten' if is_done else 'Would be forgotten'}: {count}.")
    if not has_asked:
        _print_places(cli, plan)
    for label in stays:
        where = "in its conversation and in the ledger" if label in plan.holders else "in the ledger"
        what = f"the recorded steps of session {label} stay {where}"
        cli.console.warning(visible_line(f"{what}; `nexus session delete {quote(label)}` erases them"))


# ---- proof ----------------------------------------------------------------------------------------------------------


class ForgetProof(NamedTuple):
    """What is found after something was forgotten.

    Attributes:
        returned: Memories and steps that were forgotten, and that a query still returns.
        repeated: The first words of other memories and steps that may say the same, by their names.
    """

    returned: Sequence[str] = ()
    repeated: Mapping[str, str] = {}


def _ask_again(nexus: Nexus, given: GivenMemories, plan: ForgetPlan) -> ForgetProof:
    """Ask the queries again, and compare what they return with what was forgotten.

    Later turns of sessions that were given it are compared, too.
    """
    returned: set[str] = set()
    repeated: dict[str, str] = {}
    steps: set[str] = set()
    for query, question in plan.queries.items():
        for memory in nexus.recall(query, limit=_MAX_ANSWERS, everywhere=True).memories:
            if memory.id in plan.ids or memory.source.uri in plan.uris:
                returned.add(memory.id)
            elif memory.kind == "episode":
                names = (memory.source.uri, *_STEP_REFERENCE.findall(memory.text))
                steps |= {name.removeprefix(_STEP) for name in names}
            elif any(fact.are_repeated_in(memory.text, question) for fact in plan.facts):
                repeated[memory.id] = memory.text
        steps |= {hit.step for hit in nexus.search(query, limit=_MAX_ANSWERS).hits}
    returned |= steps & plan.steps
    turns = {turn.id for each in plan.injected if (turn := given.find_turn(each))}
    steps |= {step.id for step in given.find_later_steps(plan.injected, is_reply=False)}
    for name in sorted(steps - plan.steps):
        step = nexus.ledger.step(name)
        if step is not None:
            text = _read_step_text(step)
            # A message that the memory was recalled for has its words, and need not say it.
            question = text if name in turns else _read_question(nexus.ledger, step)
            if name not in turns and any(fact.are_repeated_in(question) for fact in plan.facts):
                question = ""  # it says so itself
            if any(fact.are_repeated_in(text, question) for fact in plan.facts):
                repeated[f"{_STEP}{name}"] = text
    return ForgetProof(sorted(returned), {name: _excerpt(text) for name, text in repeated.items()})


def _print_proof(cli: CliContext, queries: int, proof: ForgetProof) -> None:
    if proof.returned:
        cli.console.warning(f"{format_count(queries, 'question')} asked again, and found: {', '.join(proof.returned)}")
    if proof.repeated:
        count = format_count(len(proof.repeated), "other place")
        cli.console.warning(
            f"{count} may still say it; `nexus memory forget {next(iter(proof.repeated))}` forgets one:"
        )
        for name, text in [*proof.repeated.items()][:_MAX_REPEATED]:
            cli.console.message(visible_line(f"  {name}: {text}"))
        if len(proof.repeated) > _MAX_REPEATED:
            cli.console.message(f"  {len(proof.repeated) - _MAX_REPEATED:,} more; --json lists them")
    if queries and not proof.returned and not proof.repeated:
        cli.console.message(f"{format_count(queries, 'question')} that could find it asked again: none does.")
