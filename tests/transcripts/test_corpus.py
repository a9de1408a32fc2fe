"""Sessions of real people, in the folder that NEXUS_CORPUS names; skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core.errors import TranscriptError
from nexus_core.history.repair import check_messages
from nexus_core.host.manager import get_installed_host
from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import gather_transcript, load_formats, read_transcript
from nexus_core.types.messages import Opaque
from tests.conftest import CORPUS
from tests.transcripts.independent import find_missing, list_contents
from tests.transcripts.support import every_line, said

SESSIONS = CORPUS / "sessions"
EVERY = sorted(path for path in SESSIONS.rglob("*") if path.is_file())
OTHERS = [path for path in EVERY if path.relative_to(SESSIONS).parts[0] == "other"]
FILES = [path for path in EVERY if path not in OTHERS]
PROGRAMS = {"gemini": "gemini-cli"}
"""The format of a program, if it has another name."""
FORMATS = {"claude-code": "claude-code", "codex": "codex", "pi": "pi", "openai-chat": "messages"}

pytestmark = pytest.mark.skipif(not FILES, reason="NEXUS_CORPUS names no folder of sessions")


def read(name: str) -> Transcript:
    (file,) = SESSIONS.rglob(name)
    return read_transcript(file.read_text(encoding="utf-8"), file.name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_read_and_every_line_accounted_for(file: Path) -> None:
    transcript = read_transcript(file.read_text(encoding="utf-8"), file.name)

    assert transcript.format == FORMATS[file.relative_to(SESSIONS).parts[0]]
    assert transcript.entries
    if file.suffix == ".jsonl":
        assert every_line(transcript) == list(range(1, transcript.report.lines + 1))


@pytest.mark.parametrize("file", OTHERS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_file_of_another_agent_is_read_without_loss_or_refused(file: Path) -> None:
    folder = file.relative_to(SESSIONS).parts[1]
    program = PROGRAMS.get(folder, folder)
    formats = load_formats(get_installed_host())
    text = gather_transcript(file, formats) or file.read_text(encoding="utf-8")
    try:
        transcript = read_transcript(text, str(file), formats=formats)
    except TranscriptError as error:
        assert error.code in ("partial-session", "unknown-format")  # noqa: PT017 - reading may succeed as well
        return

    assert transcript.format == program
    assert find_missing(transcript, list_contents(program, text)) == []


def test_real_sessions_of_claude_code_are_valid_but_for_results_in_several_messages() -> None:
    for name in ("2b4ed4c0-b905-41de-9238-273db3ec737a.jsonl", "agent-aef063ba534d73153.jsonl"):
        transcript = read(name)

        assert {finding.code for finding in check_messages(transcript.messages, "anthropic")} <= {"split-results"}
        assert transcript.branches == ()
        assert not any(isinstance(part, Opaque) for message in transcript.messages for part in message.parts)


def test_answers_of_a_real_session_are_merged() -> None:
    transcript = read("agent-aef063ba534d73153.jsonl")

    assert transcript.report.outcomes["merged"] == (3, 7, 9, 12)
    assert [call.name for call in transcript.entries[3].message.tool_calls] == ["Read", "Read", "Read"]


def test_forks_of_a_real_file_are_found() -> None:
    transcript = read("dag_fork.jsonl")

    assert said(transcript.entries)[3:] == ["user: Fork from c", "assistant: Forked reply", "user: End of s3"]
    assert [(len(branch.entries), branch.parent) for branch in transcript.branches] == [(5, "c")]
