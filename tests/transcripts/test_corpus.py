"""Sessions of real people, in the folder that NEXUS_CORPUS names; skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core.errors import TranscriptError
from nexus_core.history.repair import check_messages
from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import read_transcript
from nexus_core.types.messages import Opaque
from tests.conftest import CORPUS
from tests.transcripts.support import every_line, said

SESSIONS = CORPUS / "sessions"
EVERY = sorted(path for path in SESSIONS.rglob("*") if path.is_file())
FOREIGN = [path for path in EVERY if path.relative_to(SESSIONS).parts[0] == "other" and path.parent.name != "gemini"]
FILES = [path for path in EVERY if path not in FOREIGN]
PLAIN = ("hermes", "migration")
"""Of these the one is a list of messages, the other a number."""
FORMATS = {"claude-code": "claude-code", "codex": "codex", "pi": "pi", "openai-chat": "messages", "other": "gemini-cli"}

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


@pytest.mark.parametrize("file", FOREIGN, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_what_cannot_be_read_is_refused_by_name(file: Path) -> None:
    program = file.relative_to(SESSIONS).parts[1]
    if program in PLAIN or file.name in PLAIN:
        pytest.skip("nothing of a program that Nexus cannot read")
    with pytest.raises(TranscriptError) as caught:
        read_transcript(file.read_text(encoding="utf-8"), file.name)

    assert (caught.value.code, caught.value.nearest) == ("unsupported-format", program)


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
