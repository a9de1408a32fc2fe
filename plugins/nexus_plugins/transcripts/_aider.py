"""Reader for Aider: `.aider.chat.history.md` of a project.

Aider writes what was said as Markdown: a line `# aider chat started at …` begins a chat, lines with `#### ` are the
user, lines with `> ` are what Aider itself printed, everything else is the model.

The format has no escapes: a heading `#### ` or a quote `> ` in a reply looks like the user or Aider, and is read as
such. Calls, results, files that were added to the chat, times of messages, tokens and the model of a reply are not in
it. All chats of a file become one session; each begins with an empty context.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin.transcripts import SCORE_NONE, EntryCollector, JsonLine, TranscriptFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin.transcripts import LineAccount, Transcript

NAME = "aider"
_START = re.compile(r"# aider chat started at (.*)$")
_USER = "####"
_PRINTED = ">"
_MAX_SCANNED_CHARS = 100_000


class _Block(NamedTuple):
    kind: str
    line: int
    text: str


def match_text(text: str) -> bool:
    """True if the text has the line with which Aider begins a chat, before anything else but blank lines."""
    first = next((line for line in text[:_MAX_SCANNED_CHARS].split("\n") if line.strip()), "")
    return _START.match(first) is not None


def read_text(text: str, account: LineAccount) -> Transcript:
    """Parse a history of chats."""
    lines = text.removeprefix("\ufeff").split("\n")
    found = EntryCollector(NAME, account)
    time, has_chat = "", False
    for block in _split_blocks(lines):
        account.lines += 1
        record = JsonLine(block.line, {"type": block.kind, "text": block.text})
        if block.kind == "start":
            time = block.text
            if has_chat:
                found.add_compaction(record, "", time=time)
            else:
                found.keep(record)
            has_chat = True
        elif block.kind == "user":
            found.add("user", block.text, record, time=time)
        elif block.kind == "reply":
            found.add("assistant", block.text, record, time=time)
        else:
            found.keep(record)
    path = PurePath(account.name)
    is_project = path.name == ".aider.chat.history.md" and path.is_absolute()
    return found.build(cwd=str(path.parent) if is_project else "")


def _split_blocks(lines: list[str]) -> Iterator[_Block]:
    """Yield runs of lines of one kind, each with its first line. Blank lines belong to the run around them."""
    kind, start, texts = "", 1, []
    for number, line in enumerate(lines, 1):
        found, text = _read_line(line)
        if found == "" and kind in ("reply", ""):
            texts += [text] if kind else []
            continue
        if found != kind or found == "start":
            if kind and "".join(texts).strip():
                yield _Block(kind, start, "\n".join(texts).strip("\n"))
            kind, start, texts = found, number, []
        texts.append(text)
    if kind and "".join(texts).strip():
        yield _Block(kind, start, "\n".join(texts).strip("\n"))


def _read_line(line: str) -> tuple[str, str]:
    """Return the kind and the text of a line; kind "" for a blank one."""
    if started := _START.match(line):
        return "start", started[1].strip()
    line = line.rstrip("\r")
    if line.startswith(_USER):
        return "user", line[len(_USER) :].removeprefix(" ").rstrip()
    if line.startswith(_PRINTED):
        return "printed", line[len(_PRINTED) :].removeprefix(" ").rstrip()
    return ("reply", line) if line.strip() else ("", "")


def score_line(_value: dict[str, Any]) -> int:
    """Score nothing: the file is not JSON."""
    return SCORE_NONE


FORMAT = TranscriptFormat(NAME, "a chat history of Aider", score_line, match_text=match_text, read_text=read_text)
