"""Lookup of memories by id, title, step or file."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.cli.session_lookup import find_session
from nexus_core.errors import UsageError
from nexus_core.files.places import expand_user
from nexus_core.memory.forgotten_memories import ForgottenMemories
from nexus_core.request.memories import InjectedMemory, find_sessions_with, list_injected_memories
from nexus_core.types.memory import Memory, compute_memory_id
from nexus_core.types.payloads import ForgetPayload
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.memory import MemoryOrigin

_ID = re.compile("[0-9a-f]{4,12}")
"""The id of a memory, or a beginning of it."""
_MIN_EPISODE_ID_CHARACTERS = 8
"""Fewer characters of the id of an episode or a step would match too many steps, or be a word."""
STEP_PREFIX = "step:"


def list_all_injected(ledger: Ledger, session: str = "") -> list[InjectedMemory]:
    """Return the memories injected into one session, or all if none is named."""
    records = [find_session(ledger, session)] if session else ledger.sessions(status=None)
    return [each for record in records for each in list_injected_memories(ledger, record)]


def is_memory_id(name: str) -> bool:
    """Return True if a name may be the id of a memory, or a beginning of one."""
    return _ID.fullmatch(name) is not None


def match_memory_id(
    ledger: Ledger, name: str, memories: Iterable[Memory], given: InjectedMemoryIndex
) -> dict[str, Source]:
    """Return ids and sources of the memories whose id begins with a name.

    Raises:
        UsageError: Several memories have an id with that beginning.
    """
    if not is_memory_id(name):
        return {}
    found = {memory.id: memory.source for memory in memories if memory.id.startswith(name)}
    found = found or {each.id: each.source for each in given.every if each.id.startswith(name)}
    if not found and len(name) >= _MIN_EPISODE_ID_CHARACTERS:  # an episode that no session was given yet
        steps = {compute_memory_id(f"{STEP_PREFIX}{step.id}"): step for step in ledger.steps()}
        found = {id_: Source(uri=f"{STEP_PREFIX}{step.id}") for id_, step in steps.items() if id_.startswith(name)}
    if len(found) > 1:
        raise UsageError(f"{len(found):,} memories have ids that begin with {name!r}", hint="give more of the id")
    return found


def find_named_step(ledger: Ledger, name: str) -> Step | None:
    """Return the step that `step:` with a part of its id names, or a long part alone.

    Raises:
        UsageError: There is no such step, or there are several.
    """
    from nexus_core.thread.lookup import find_step

    part = name.removeprefix(STEP_PREFIX)
    if part == name and (" " in name or len(name) < _MIN_EPISODE_ID_CHARACTERS):
        return None
    step = find_step(ledger, part)
    if step is None and part != name:
        raise UsageError(f"there is no step {part!r}", hint="`nexus memory search` prints steps")
    return step


def find_named_file(nexus: Nexus, name: str, files: Collection[str]) -> str:
    """Return the path of the note with that path or file name, or "".

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
    from nexus_core.thread.lookup import find_turn_steps

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
    """

    def __init__(self, ledger: Ledger, forgotten: ForgottenMemories = ForgottenMemories()) -> None:  # noqa: B008 - immutable
        self.ledger = ledger
        self.forgotten = forgotten
        self._texts: dict[InjectedMemory, str] = {}
        self._threads: dict[str, list[Step]] = {}

    @cached_property
    def every(self) -> list[InjectedMemory]:
        """All of them."""
        return list_all_injected(self.ledger)

    def find(
        self, ids: Collection[str], uris: Collection[str], has_text: Callable[[str], bool] | None
    ) -> list[InjectedMemory]:
        """Return the memories with an id, a source, a quoted step or a text."""
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
        return {injected.source.uri, *STEP_REFERENCE.findall(self.read_text(injected))}

    def read_text(self, injected: InjectedMemory) -> str:
        """Return the text of a memory as it was sent, or ""."""
        if injected not in self._texts:
            self._texts[injected] = _read_sent_text(self.ledger, injected)
        return self._texts[injected]

    def build_memory(self, id_: str, source: Source) -> Memory | None:
        """Return an injected memory as a `Memory`, or None if its text is lost."""
        if not source.uri.startswith(STEP_PREFIX):
            sent = next((each for each in self.every if each.id == id_ and self.read_text(each)), None)
            return sent and Memory(text=self.read_text(sent), kind="note", source=source, origin="file")
        step = self.ledger.step(source.uri.removeprefix(STEP_PREFIX))
        text = "" if step is None else read_step_text(step)
        if step is None or not text:
            return None
        answer = find_reply_to_question(self.ledger, step.id)
        if answer and not self.is_forgotten(f"{STEP_PREFIX}{answer.id}"):
            text = f"{text}\nAnswered ({STEP_PREFIX}{answer.id}): {read_step_text(answer)}"
        session = next((each.label for each in self.ledger.sessions(status=None) if self._has_step(each, step)), "")
        role = step.messages[0].role
        origin: MemoryOrigin = "user" if role == "user" else "assistant" if role == "assistant" else "tool"
        return Memory(text=text, kind="episode", source=source, origin=origin, session=session, time=step.created)

    def is_forgotten(self, uri: str) -> bool:
        """Return True if a step or a file was forgotten."""
        if uri in self.forgotten.uris:
            return True
        step = self.ledger.step(uri.removeprefix(STEP_PREFIX)) if uri.startswith(STEP_PREFIX) else None
        # The list does not name the steps of a forgotten session.
        return step is not None and any(
            isinstance(later.payload, ForgetPayload) and step.id in later.payload.forgotten_steps
            for record, _ in find_sessions_with(self.ledger, [step])
            for later in self.ledger.thread(record.tip or "", first=step.id)
        )

    def _has_step(self, record: SessionRecord, step: Step) -> bool:
        from nexus_core.thread.lookup import is_in_thread

        tip = None if record.tip is None else self.ledger.step(record.tip)
        return tip is not None and is_in_thread(self.ledger, step, tip)

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
                is_after = step.position > position and step.messages and step.kind not in ("sealed", "forget")
                if is_after and (step.turn in turns and step.id != step.turn) == is_reply:
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
    for entry in read_section_entries(list(step.payload.section_entries)) if step.messages else ():
        if entry.id.endswith(injected.id) and entry.span is not None:
            start, end = entry.span
            return step.messages[0].content[start:end]
    content = ledger.blob(step.payload.memories) if step.payload.memories else None
    sections = () if content is None else read_sections(content)
    return next((section.text for section in sections if section.id.endswith(injected.id)), "")
