"""Exports of Nexus's own sessions, read as transcripts."""

from __future__ import annotations

import json

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import read_transcript
from nexus_core.transfer.exporter import export_session
from tests.transcripts.support import every_line, said, sample
from tests.transfer.support import import_sample, read_next


def exported(name: str) -> tuple[MemoryLedger, str, str]:
    ledger = MemoryLedger()
    label = import_sample(ledger, name).label
    return ledger, label, "".join(export_session(ledger, label, with_forks=True))


def read_back(name: str) -> Transcript:
    return read_transcript(exported(name)[2], name)


def test_an_export_says_what_the_transcript_said() -> None:
    for name in ("claude.jsonl", "codex.jsonl", "gemini_cli.jsonl", "pi.jsonl", "chat.json"):
        transcript, original = read_back(name), sample(name)

        assert transcript.format == "nexus"
        assert said(transcript.entries) == said(original.entries)
        assert every_line(transcript) == list(range(1, transcript.report.lines + 1))
        assert transcript.model == original.model


def test_what_a_model_would_read_next_is_what_it_reads_of_the_session() -> None:
    for name in ("claude.jsonl", "codex.jsonl", "gemini_cli.jsonl", "pi.jsonl"):
        ledger, label, text = exported(name)

        context = read_transcript(text).context

        assert [entry.message.content for entry in context] == [message.content for message in read_next(ledger, label)]


def test_forks_are_branches() -> None:
    transcript = read_back("claude.jsonl")

    assert {(branch.leaves, branch.at, *said(branch.entries)) for branch in transcript.branches} == {
        (branch.leaves, branch.at, *said(branch.entries)) for branch in sample("claude.jsonl").branches
    }


def test_costs_are_told() -> None:
    costs = [entry.usage for entry in sample("claude.jsonl").entries if entry.usage]

    assert [entry.usage for entry in read_back("claude.jsonl").entries if entry.usage] == costs


def test_a_step_in_a_shape_that_is_new_is_kept_whole() -> None:
    lines = exported("chat.json")[2].splitlines()
    step = json.loads(lines[-2])
    step["messages"] = [{"nexus": 2, "role": "ghost"}]
    step["data"]["usage"] = {"input_tokens": "many"}

    transcript = read_transcript([*lines[:-2], json.dumps(step), lines[-1]])

    assert transcript.report.notes
    assert len(transcript.entries) == 5
