"""Damaged and hostile files through every reader: read or refused, nothing is run, no other file opened."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.errors import MessageError, TranscriptError
from nexus_core.host.manager import get_installed_host
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.transcripts.read import (
    gather_transcript,
    list_transcript_files,
    load_formats,
    read_transcript,
    split_conversations,
)
from nexus_core.transfer.importer import TranscriptImporter
from tests.dialects.support import JSON, spoiled
from tests.transcripts.support import AGENTS, SAMPLES, every_line, write_opencode_tree

FORMATS = load_formats(get_installed_host())
FILES = {path.name: path.read_bytes() for path in sorted([*SAMPLES.iterdir(), *AGENTS.iterdir()])}
LINE_FILES = sorted(name for name in FILES if name.endswith(".jsonl"))
NAMES = st.sampled_from(sorted(FILES))
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m\x00",
    "\u202e\u200b\ud800",
    "../../../etc/passwd",
    "file:///etc/passwd",
    "data:image/png;base64,!!!",
    "__import__('os').system('false')",
    "{{7*7}}${HOME}$(id)`id`",
    "'; DROP TABLE steps; --",
    "",
)
DEEP = "[" * 20_000 + "]" * 20_000
WATCHED = ("open", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "sqlite3.connect")

_events: list[tuple[str, str]] | None = None


@pytest.fixture(scope="module", autouse=True)
def loaded_modules() -> None:
    """Load what an import needs, and look up the dialects of plugins, so that no example is blamed for it."""
    for name, content in FILES.items():
        transcript = read_transcript(content.decode(), name, formats=FORMATS)
        ledger = MemoryLedger()
        TranscriptImporter(ledger).import_transcript(transcript, content, file_name=name)
        assert list(ledger.verify()) == []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _events is not None and event in WATCHED:
        _events.append((event, str(arguments[0])))


sys.addaudithook(_watch)


@contextmanager
def watched() -> Iterator[list[tuple[str, str]]]:
    """Collect what is opened, run or connected, but not what Python imports."""
    global _events  # noqa: PLW0603 - a hook cannot be removed
    found: list[tuple[str, str]] = []
    _events = found
    try:
        yield found
    finally:
        _events = None
        found[:] = [each for each in found if not each[1].endswith((".py", ".pyc", ".so"))]


def try_import(data: bytes, name: str) -> None:
    """Read and import a file; it is refused with an error that is no defect of a reader, and nothing is opened."""
    with watched() as events:
        text = data.decode("utf-8", "replace")
        for piece in [each.text for each in split_conversations(text)] or [text]:
            try:
                transcript = read_transcript(piece, name, formats=FORMATS)
            except MessageError as error:
                assert getattr(error, "code", "") != "reader-failed", error  # noqa: PT017 - reading may succeed as well
                continue
            if len(piece.splitlines()) > 1 and name.endswith(".jsonl"):
                assert every_line(transcript) == list(range(1, transcript.report.lines + 1))
            ledger = MemoryLedger()
            TranscriptImporter(ledger).import_transcript(transcript, piece.encode("utf-8", "replace"), file_name=name)
            assert list(ledger.verify()) == []
    assert events == []


@given(NAMES, st.data())
def test_a_file_cut_at_any_byte_is_read_or_refused(name: str, data: st.DataObject) -> None:
    content = FILES[name]

    try_import(content[: data.draw(st.integers(0, len(content)))], name)


@given(NAMES, st.data())
def test_a_file_with_damaged_bytes_is_read_or_refused(name: str, data: st.DataObject) -> None:
    content = bytearray(FILES[name])
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))

    try_import(bytes(content), name)


@given(st.sampled_from(LINE_FILES), st.sampled_from(LINE_FILES), st.randoms(use_true_random=False))
def test_lines_of_two_files_in_turns_are_read_or_refused(one: str, other: str, random: Any) -> None:
    left, right = (FILES[name].splitlines(keepends=True) for name in (one, other))
    mixed = []
    while left or right:
        mixed.append((left if left and (not right or random.random() < 0.5) else right).pop(0))

    try_import(b"".join(mixed), one)


@given(NAMES, st.sampled_from(HOSTILE), st.data())
def test_hostile_texts_are_read_or_refused(name: str, text: str, data: st.DataObject) -> None:
    def infect(value: Any) -> Any:
        if isinstance(value, dict):
            return {infect(key) if data.draw(RARELY) else key: infect(each) for key, each in value.items()}
        if isinstance(value, list):
            return [infect(each) for each in value]
        return text if isinstance(value, str) and data.draw(OFTEN) else value

    try_import(_change_values(name, infect), name)


RARELY, OFTEN = st.integers(0, 19).map(lambda value: value == 0), st.integers(0, 3).map(lambda value: value == 0)


@given(NAMES, st.data())
def test_values_of_other_types_are_read_or_refused(name: str, data: st.DataObject) -> None:
    try_import(_change_values(name, lambda value: data.draw(spoiled(st.just(value)))), name)


@given(NAMES, st.data())
def test_values_nested_deeply_are_read_or_refused(name: str, data: st.DataObject) -> None:
    pieces = FILES[name].decode().split('"')
    index = data.draw(st.integers(0, max(len(pieces) // 2 - 1, 0))) * 2 + 1
    pieces[min(index, len(pieces) - 1)] = f'"@{DEEP}@"'

    try_import('"'.join(pieces).replace('""@', "").replace('@""', "").encode(), name)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_line_of_megabytes_is_read_or_refused(name: str) -> None:
    huge = "x " * 2_000_000
    first, rest = (FILES[name], b"") if not name.endswith(".jsonl") else FILES[name].split(b"\n", 1)
    changed = (
        json.dumps(_replace_longest(json.loads(first), huge)).encode() if name != "aider.md" else first + huge.encode()
    )

    try_import(changed + b"\n" + rest, name)


def _change_values(name: str, change: Any) -> bytes:
    """Return a sample with each line, or its document, changed."""
    text = FILES[name].decode()
    if name.endswith(".md"):
        return str(change({"text": text})).encode("utf-8", "surrogatepass")
    lines = text.splitlines() if name.endswith(".jsonl") else [text]
    return "".join(json.dumps(change(json.loads(line))) + "\n" for line in lines).encode()


def _replace_longest(value: Any, text: str) -> Any:
    found: list[tuple[int, Any, Any]] = []

    def walk(inner: Any) -> None:
        for key in list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ():
            if isinstance(inner[key], str):
                found.append((len(inner[key]), inner, key))
            walk(inner[key])

    walk(value)
    if found:
        _, holder, key = max(found, key=lambda each: each[0])
        holder[key] = text
    return value


# ---- conversations in several files, and databases -------------------------------------------------------------------


def try_gather(path: Path, folder: Path) -> None:
    """Gather and read a conversation: of the files, only those below a folder are opened, and none is changed."""
    before = {each: each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}
    with watched() as events:
        try:
            list_transcript_files(path, FORMATS)
            text = gather_transcript(path, FORMATS)
        except TranscriptError as error:
            assert error.code in ("unreadable-database", "too-large")  # noqa: PT017 - as above
            text = None
    opened = [os.path.realpath(name.removeprefix("file:").partition("?")[0]) for _, name in events]
    assert [name for name in opened if not name.startswith(os.path.realpath(folder))] == []
    assert {kind for kind, _ in events} <= {"open", "sqlite3.connect"}
    assert {each: each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()} == before
    if text is not None:
        try_import(text.encode("utf-8", "replace"), str(path))


def _damage(content: bytes, data: st.DataObject) -> bytes:
    kind = data.draw(st.sampled_from(["cut", "spoil", "hostile", "keep"]))
    if kind == "cut":
        return content[: data.draw(st.integers(0, len(content)))]
    if kind == "keep":
        return content
    value = json.loads(content)
    if kind == "spoil":
        return json.dumps(data.draw(spoiled(st.just(value)))).encode()
    keys = [key for key in value if isinstance(value[key], str)]
    for key in keys:
        if data.draw(OFTEN):
            value[key] = data.draw(st.sampled_from(HOSTILE))
    return json.dumps(value).encode()


@given(st.data())
def test_a_damaged_tree_of_opencode_is_read_or_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret.json")
        secret.write_text('{"type": "text", "text": "secret"}')
        tree = Path(folder, "tree")
        session = write_opencode_tree(tree)
        for path in sorted(tree.rglob("*.json")):
            path.write_bytes(_damage(path.read_bytes(), data))
            if data.draw(RARELY):
                path.unlink()
                path.symlink_to(secret)

        try_gather(session, tree)


@given(st.data())
def test_a_damaged_conversation_of_openhands_is_read_or_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder, "base_state.json")
        known = {"id": "oh", "agent": {"llm": {"model": "m"}}, "workspace": {"working_dir": "/srv"}}
        state.write_bytes(_damage(json.dumps(known).encode(), data))
        Path(folder, "events").mkdir()
        for number, line in enumerate(FILES["openhands_events.jsonl"].splitlines()):
            Path(folder, f"events/event-{number:05}.json").write_bytes(_damage(line, data))

        try_gather(state, Path(folder))


TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "state.db": {
        "sessions": ("id", "model", "started_at", "cwd"),
        "messages": ("session_id", "role", "content", "tool_calls", "tool_call_id", "active", "reasoning"),
    },
    "opencode.db": {
        "session": ("id", "parent_id", "directory", "title", "version"),
        "message": ("id", "session_id", "data"),
        "part": ("id", "message_id", "data"),
    },
    "state.vscdb": {"cursorDiskKV": ("key", "value")},
}
CELLS = st.one_of(
    st.sampled_from(["s1", "m1", "user", "assistant", "tool", "composerData:s1", "bubbleId:s1:m1", None, 1, -1.5]),
    st.sampled_from(HOSTILE).map(lambda text: text.replace("\ud800", "")),
    JSON.map(json.dumps),
    st.sampled_from(
        [
            '{"composerId": "s1", "conversation": [{"type": 1, "text": "hi"}, {"type": 2, "text": "yo"}]}',
            '{"composerId": "s1", "fullConversationHeadersOnly": [{"bubbleId": "m1"}]}',
            '{"role": "user", "sessionID": "s1", "time": {"created": 1}}',
            '{"type": "text", "text": "hi"}',
            '[{"id": "c1", "function": {"name": "oven", "arguments": "{}"}}]',
        ]
    ),
    st.binary(max_size=20),
    st.just(DEEP),
)


@given(st.sampled_from(sorted(TABLES)), st.data())
def test_a_database_with_any_values_is_read_or_refused(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        with sqlite3.connect(path) as database:
            for table, columns in TABLES[name].items():
                given_columns = data.draw(st.lists(st.sampled_from(columns), unique=True, min_size=1))
                database.execute(f"CREATE TABLE {table} ({', '.join(given_columns)})")
                for _ in range(data.draw(st.integers(0, 5))):
                    row = [data.draw(CELLS) for _ in given_columns]
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        database.close()
        if data.draw(OFTEN):
            content = bytearray(path.read_bytes())
            for _ in range(data.draw(st.integers(1, 50))):
                content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
            path.write_bytes(content)

        try_gather(path, Path(folder))
