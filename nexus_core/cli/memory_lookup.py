"""Lookup of memories by id, title, step or file."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core.cli.commands.session.overview import DamagedSession, collect_damage
from nexus_core.cli.options import ALL_ITEMS
from nexus_core.errors import UsageError
from nexus_core.files.places import expand_user
from nexus_core.memory.forgotten_memories import ForgottenMemories, read_forgotten_memories
from nexus_core.memory.recall import (
    MEMORY_ID_PREFIX,
    build_memory_query,
    diagnose_source,
    list_source,
    read_memory_options,
)
from nexus_core.request.memories import InjectedMemory, list_injected_memories
from nexus_core.text.safety import visible_line
from nexus_core.thread.lookup import find_sessions_with, find_step, find_turn_steps
from nexus_core.types.memory import Memory, compute_memory_id
from nexus_core.types.payloads import ForgetPayload
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.memory import MemoryOrigin, MemoryQuery, MemorySource
    from nexus_core.types.plugins import Finding

_ID = re.compile("[0-9a-f]{4,12}")
"""The id of a memory, or a beginning of it."""
_MIN_EPISODE_ID_CHARACTERS = 8
"""Fewer characters of the id of an episode or a step would match too many steps, or be a word."""
STEP_PREFIX = "step:"
SESSION_PREFIX = "session:"
_MAX_FINDINGS = 3
"""Warnings about notes that are printed before the answer of each command."""
_MAX_LISTED_TARGETS = 8
"""Meanings of a name that an error lists."""

TargetKind = Literal["memory", "title", "session", "step", "file"]
"""Kinds of what a name may mean; a title is that of a memory."""


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
        """Return every listed memory with its source, and print findings."""
        found = [(source, memory) for source, memory in self.list_with_forgotten(cli) if not self.forgotten.has(memory)]
        self.print_findings(cli)
        return found

    def list_with_forgotten(self, cli: CliContext) -> list[tuple[MemorySource, Memory]]:
        """Return every listed memory with its source, forgotten ones included."""
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
        print_memory_findings(cli, [finding for source in sources for finding in diagnose_source(source)])


def print_memory_findings(cli: CliContext, findings: Sequence[Finding]) -> None:
    """Warn of the first findings about memories, and say how many more there are."""
    listed = findings if len(findings) <= _MAX_FINDINGS + 1 else findings[:_MAX_FINDINGS]
    for finding in listed:
        cli.console.warning(visible_line(f"{finding.place}: {finding.message}" if finding.place else finding.message))
    if len(findings) > len(listed):
        cli.console.warning(f"{len(findings) - len(listed):,} more; `nexus doctor` lists them")


def list_all_injected(ledger: Ledger, damaged: list[DamagedSession]) -> list[InjectedMemory]:
    """Return the memories injected into all sessions, and add those that cannot be read to `damaged`."""
    found: list[InjectedMemory] = []
    for record in ledger.sessions(status=None):
        with collect_damage(damaged, record.label):
            found += list_injected_memories(ledger, record)
    return found


def print_damage(cli: CliContext, damaged: Iterable[DamagedSession]) -> None:
    """Warn of sessions that are not searched, or not completely, each once."""
    first: dict[str, str] = {}
    for each in damaged:
        first.setdefault(each.label, each.what)
    for label, what in first.items():
        subject = f"session {label} is" if label else "some steps are"
        cli.console.warning(visible_line(f"{subject} not searched: {what}"))


class NamedTarget(NamedTuple):
    """A memory, session, step or file that a name means.

    Attributes:
        kind: Its kind.
        name: The id of the memory or the step, the name of the session, or the path.
        source: The source of a memory; None for one that only the list of forgotten memories has.
    """

    kind: TargetKind
    name: str
    source: Source | None = None

    @property
    def exact_name(self) -> str:
        """The name that means nothing else."""
        prefix = {"session": SESSION_PREFIX, "step": STEP_PREFIX}.get(self.kind, "")
        return f"{prefix}{self.name}"


def resolve_memory_name(
    nexus: Nexus,
    name: str,
    memories: Sequence[Memory],
    injected_index: InjectedMemoryIndex,
    *,
    kinds: Collection[TargetKind],
    forgotten_ids: Collection[str] = (),
) -> NamedTarget | None:
    """Return what a name means, or None if it is neither an id nor the name of something.

    Args:
        nexus: The Nexus.
        name: An id or a beginning of it, a title, `session:` and a session, `step:` and a step, or a file.
        memories: The memories that sources list.
        injected_index: The memories that sessions were given.
        kinds: The kinds that are accepted.
        forgotten_ids: Ids of forgotten memories, which may not be listed any more.

    Raises:
        UsageError: It means several things, or there is no such step.
    """
    found: list[NamedTarget] = []
    if name.startswith(STEP_PREFIX) and "step" in kinds:
        return _find_steps(nexus.ledger, name)[0]
    if name.startswith(SESSION_PREFIX) and "session" in kinds:
        found = _find_sessions(nexus.ledger, name.removeprefix(SESSION_PREFIX))
    if not found:
        found = _find_memories(nexus.ledger, name, memories, injected_index, forgotten_ids)
        if any(each.name == name for each in found):
            return next(each for each in found if each.name == name)
        found += _find_titles(name, memories) if "title" in kinds else []
        found += _find_sessions(nexus.ledger, name) if "session" in kinds else []
        found += _find_steps(nexus.ledger, name)
        sources = [*(memory.source for memory in memories), *(each.source for each in injected_index.memories)]
        known = {each.source.uri for each in found if each.source is not None}
        files = _find_files(nexus, name, {source.uri for source in sources if source.is_file})
        found += [each for each in files if each.name not in known]
    found = [*{each.exact_name: each for each in found}.values()]
    if len(found) > 1:
        listed = ", ".join(each.exact_name for each in found[:_MAX_LISTED_TARGETS])
        more = ", …" if len(found) > _MAX_LISTED_TARGETS else ""
        raise UsageError(f"{name!r} could mean {len(found):,} things: {listed}{more}", hint="give one of these names")
    return found[0] if found else None


def _find_memories(
    ledger: Ledger,
    name: str,
    memories: Iterable[Memory],
    injected_index: InjectedMemoryIndex,
    forgotten_ids: Iterable[str],
) -> list[NamedTarget]:
    """Return the memories whose id begins with a name."""
    if _ID.fullmatch(name) is None:
        return []
    found: dict[str, Source | None] = {each.id: each.source for each in memories if each.id.startswith(name)}
    found = found or {each.id: each.source for each in injected_index.memories if each.id.startswith(name)}
    if not found and len(name) >= _MIN_EPISODE_ID_CHARACTERS:  # an episode that no session was given yet
        steps = {compute_memory_id(f"{STEP_PREFIX}{step.id}"): step for step in ledger.steps()}
        found = {id_: Source(uri=f"{STEP_PREFIX}{step.id}") for id_, step in steps.items() if id_.startswith(name)}
    found = found or {id_: None for id_ in sorted(forgotten_ids) if id_.startswith(name)}
    return [NamedTarget("memory", id_, source) for id_, source in found.items()]


def _find_titles(name: str, memories: Iterable[Memory]) -> list[NamedTarget]:
    found = {each.id: each.source for each in memories if each.title == name}
    return [NamedTarget("memory", id_, source) for id_, source in found.items()]


def _find_sessions(ledger: Ledger, name: str) -> list[NamedTarget]:
    record = ledger.session(name)
    return [] if record is None else [NamedTarget("session", record.label)]


def _find_steps(ledger: Ledger, name: str) -> list[NamedTarget]:
    """Return the step that `step:` with a part of its id names, or a long part alone.

    Raises:
        UsageError: There is no such step, or there are several.
    """
    part = name.removeprefix(STEP_PREFIX)
    if part == name and (" " in name or len(name) < _MIN_EPISODE_ID_CHARACTERS):
        return []
    step = find_step(ledger, part)
    if step is None and part != name:
        raise UsageError(f"there is no step {part!r}", hint="`nexus memory search` prints steps")
    return [] if step is None else [NamedTarget("step", step.id)]


def _find_files(nexus: Nexus, name: str, files: Collection[str]) -> list[NamedTarget]:
    """Return the notes with that path, or with that file name."""
    if "\n" in name:
        return []
    bare = re.sub(r":\d+-\d+\Z", "", name)  # the lines of a note
    path = nexus.cwd / expand_user(bare)
    exact = (str(path), os.path.normpath(path), str(path.resolve()))
    found = [each for each in dict.fromkeys(exact) if each in files][:1]
    found = found or sorted(path for path in files if Path(path).name == bare)
    return [NamedTarget("file", each) for each in found]


def looks_like_path(nexus: Nexus, name: str) -> bool:
    """Return True if a name is probably that of a file."""
    is_name = "\n" not in name and " " not in name.strip()
    return is_name and ("/" in name or os.path.exists(nexus.cwd / name))  # noqa: PTH110 - Path.exists may raise


def read_step_text(step: Step) -> str:
    """Return the text of all messages of a step."""
    from nexus_core.ledger.ledger import find_message_texts

    return "\n".join(text for message in step.messages for text in find_message_texts(message))


def find_reply_to_question(ledger: Ledger, name: str) -> Step | None:
    """Return the reply to a question step, or None."""
    step = ledger.step(name)
    if step is None or not step.messages or not step.messages[0].content.rstrip().endswith("?"):
        return None
    later = (each for each in find_turn_steps(ledger, step) if each.messages and each.position > step.position)
    following = next((each for each in later if each.kind != "sealed"), None)
    return following if following is not None and following.messages[0].role == "assistant" else None


STEP_REFERENCE = re.compile(r"step:\w+")


class InjectedMemoryIndex:
    """The memories that sessions were given, and the steps that came after them.

    Args:
        ledger: The ledger.
        forgotten: What the user has forgotten.

    Attributes:
        damaged: Sessions that could not be read.
    """

    def __init__(self, ledger: Ledger, forgotten: ForgottenMemories = ForgottenMemories()) -> None:  # noqa: B008 - immutable
        self.ledger = ledger
        self.forgotten = forgotten
        self.damaged: list[DamagedSession] = []
        self._texts: dict[InjectedMemory, str] = {}
        self._threads: dict[str, list[Step]] = {}

    @cached_property
    def memories(self) -> list[InjectedMemory]:
        """The memories that sessions were given."""
        return list_all_injected(self.ledger, self.damaged)

    def find(
        self, ids: Collection[str], uris: Collection[str], has_text: Callable[[str], bool] | None
    ) -> list[InjectedMemory]:
        """Return the memories with an id, a source, a quoted step or a text."""
        return [
            each
            for each in self.memories
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
        return {injected.source.uri, *STEP_REFERENCE.findall(self.read_text(injected))}

    def read_text(self, injected: InjectedMemory) -> str:
        """Return the text of a memory as it was sent, or ""."""
        if injected not in self._texts:
            self._texts[injected] = _read_sent_text(self.ledger, injected)
        return self._texts[injected]

    def build_memory(self, id_: str, source: Source) -> Memory | None:
        """Return an injected memory as a `Memory`, or None if its text is lost."""
        if not source.uri.startswith(STEP_PREFIX):
            sent = next((each for each in self.memories if each.id == id_ and self.read_text(each)), None)
            return sent and Memory(text=self.read_text(sent), kind="note", source=source, origin="file")
        step = self.ledger.step(source.uri.removeprefix(STEP_PREFIX))
        text = "" if step is None else read_step_text(step)
        if step is None or not text:
            return None
        answer = find_reply_to_question(self.ledger, step.id)
        if answer and not self.is_forgotten(f"{STEP_PREFIX}{answer.id}"):
            text = f"{text}\nAnswered ({STEP_PREFIX}{answer.id}): {read_step_text(answer)}"
        session = next((record.label for record, _ in find_sessions_with(self.ledger, [step])), "")
        role = step.messages[0].role
        origin: MemoryOrigin = "user" if role == "user" else "assistant" if role == "assistant" else "tool"
        return Memory(text=text, kind="episode", source=source, origin=origin, session=session, time=step.created)

    def is_forgotten(self, uri: str) -> bool:
        """Return True if a step or a file was forgotten."""
        if uri in self.forgotten.uris:
            return True
        step = self.ledger.step(uri.removeprefix(STEP_PREFIX)) if uri.startswith(STEP_PREFIX) else None
        # The list does not name the steps of a forgotten session.
        if step is None:
            return False
        for record, _ in find_sessions_with(self.ledger, [step]):
            with collect_damage(self.damaged, record.label):
                payloads = (later.payload for later in self.ledger.thread(record.tip or "", first=step.id))
                if any(isinstance(each, ForgetPayload) and step.id in each.forgotten_steps for each in payloads):
                    return True
        return False

    def find_turn(self, injected: InjectedMemory) -> Step | None:
        """Return the user message that a memory was recalled for."""
        recorded = self.ledger.step(injected.step)
        return None if recorded is None else self.ledger.step(recorded.turn)

    def find_later_steps(self, injected: Iterable[InjectedMemory], *, is_reply: bool) -> Iterator[Step]:
        """Yield the replies or later steps of turns that got a memory."""
        first: dict[str, int] = {}
        turns = set()
        for each in injected:
            turn = self.find_turn(each)
            if turn is not None:
                turns.add(turn.id)
                first[each.session] = min(turn.position, first.get(each.session, turn.position))
        for label, position in first.items():
            for step in self._read_thread(label):
                if step.position <= position or step.kind in ("sealed", "forget"):
                    continue
                has_messages = False
                with collect_damage(self.damaged, label):
                    has_messages = bool(step.messages)
                if has_messages and (step.turn in turns and step.id != step.turn) == is_reply:
                    yield step

    def _read_thread(self, label: str) -> list[Step]:
        if label not in self._threads:
            record = self.ledger.session(label)
            self._threads[label] = [] if record is None or record.tip is None else self.ledger.thread(record.tip)
        return self._threads[label]


def _read_sent_text(ledger: Ledger, injected: InjectedMemory) -> str:
    """Return the part of a message that holds a memory, or ""."""
    from nexus_core.request.input import read_section_entries
    from nexus_core.request.prefix import read_sections
    from nexus_core.types.payloads import RenderedPayload

    step = ledger.step(injected.step)
    if step is None or not isinstance(step.payload, RenderedPayload):
        return ""
    section_id = f"{MEMORY_ID_PREFIX}{injected.id}"
    for entry in read_section_entries(list(step.payload.section_entries)) if step.messages else ():
        if entry.id == section_id and entry.span is not None:
            start, end = entry.span
            return step.messages[0].content[start:end]
    content = ledger.blob(step.payload.memories) if step.payload.memories else None
    sections = () if content is None else read_sections(content)
    return next((section.text for section in sections if section.id == section_id), "")
