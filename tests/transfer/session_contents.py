"""What the sessions of an imported transcript show, beside what another reading of its file finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nexus_core.errors import MessageError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.text.safety import visible
from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import gather_transcript, read_transcript, split_conversations
from nexus_core.transfer.documents import DocumentBlock, build_document
from nexus_core.transfer.importer import TranscriptImporter
from tests.transcripts.independent import list_contents, list_leaves
from tests.transfer.round_trips import FORMATS

CORPUS_FOLDERS = {"openai-chat": "messages", "gemini": "gemini-cli"}
SAMPLE_NAMES = {
    "claude": "claude-code",
    "gemini_cli": "gemini-cli",
    "anthropic": "messages",
    "chat": "messages",
    "gemini": "messages",
    "responses": "messages",
}


class ImportedFile(NamedTuple):
    """A transcript after its import.

    Attributes:
        program: The format that it should have.
        contents: How many texts, calls and results another reading finds in it.
        refused: The code of the error if it was refused, else "".
        format: The format that it was read in.
        missing: The contents that no session shows.
    """

    program: str
    contents: int
    refused: str = ""
    format: str = ""
    missing: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """`lossless`, `lossy`, `refused` or `wrong`."""
        if self.refused:
            return "refused"
        return "wrong" if self.format != self.program else "lossy" if self.missing else "lossless"


def guess_program(path: Path) -> str:
    """Return the format of a file of the corpus, or of the samples of the tests, by its place and name."""
    if "sessions" in path.parts:
        below = path.parts[path.parts.index("sessions") + 1 :]
        folder = below[1] if below[0] == "other" else below[0]
        return CORPUS_FOLDERS.get(folder, folder)
    return SAMPLE_NAMES.get(path.stem) or path.stem.partition("_")[0]


def import_file(path: Path) -> ImportedFile:
    """Import a file into a ledger of its own, and compare what its sessions show."""
    program = guess_program(path)
    text = gather_transcript(path, FORMATS) or path.read_text(encoding="utf-8")
    contents = list_contents(program, text)
    ledger = MemoryLedger()
    prompts: list[str] = []
    transcript = None
    try:
        for piece in [each.text for each in split_conversations(text)] or [text]:
            transcript = read_transcript(piece, str(path), formats=FORMATS)
            prompts += [message.content for message in transcript.system]
            TranscriptImporter(ledger).import_transcript(transcript, piece.encode(), file_name=str(path))
    except MessageError as error:
        return ImportedFile(program, len(contents), refused=getattr(error, "code", "") or error.what)
    shown = _show_sessions(ledger)
    prompt = "\n".join(prompts)  # of the other program: no part of the conversation
    missing = [each for each in contents if each not in prompt and not _is_shown(each, shown)]
    assert isinstance(transcript, Transcript)
    return ImportedFile(program, len(contents), format=transcript.format, missing=tuple(missing))


def _is_shown(content: str, shown: str) -> bool:
    text = content.replace("\r\n", "\n")  # as a document shows it
    return any(visible(each).strip() in shown for each in (text, json.dumps(content, ensure_ascii=False)[1:-1]))


def _show_sessions(ledger: MemoryLedger) -> str:
    found: list[str] = []
    for record in ledger.sessions(status=None):
        for turn in build_document(ledger, record, with_secrets=True).turns:
            for message in turn.messages:
                for block in message.blocks:
                    found += _show_block(block)
    return "\n".join(found)


def _show_block(block: DocumentBlock) -> Iterator[str]:
    yield from (block.title, block.text)
    if block.arguments:
        yield json.dumps(block.arguments, ensure_ascii=False)
        yield from list_leaves(dict(block.arguments))
    for result in block.results:
        yield from _show_block(result)
