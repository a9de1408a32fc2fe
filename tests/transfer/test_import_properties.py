"""Properties of imports of any transcript: complete, equivalent, idempotent."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.transcripts.base import Transcript
from nexus_core.transfer.importer import TranscriptImporter
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message
from tests.effort import examples
from tests.transcripts.test_properties import LINES, attempted, sessions
from tests.transfer.support import context_of, live_steps_of, read_next, repair_for_api, steps_of

UNHURRIED = settings(deadline=None, max_examples=examples(60))


def bring(ledger: MemoryLedger, transcript: Transcript) -> list[str]:
    """Import something; the names of all its sessions, the main one first."""
    imported = TranscriptImporter(ledger).import_transcript(transcript, file_name="file")
    return [change.label for change in imported.sessions]


def said_on(transcript: Transcript) -> list[list[Message]]:
    """What was said on each path of a transcript, its own items only."""
    paths = [transcript.entries, *(branch.entries for branch in transcript.branches)]
    return [[entry.message for entry in path] for path in paths]


def stored(messages: list[Message]) -> list[Message]:
    """Messages as a ledger gives them back: halves of characters and strange numbers are normalised."""
    ledger = MemoryLedger()
    ledger.create("s", steps=[NewStep(kind="turn", closes=True, messages=tuple(messages))])
    return [message for step in steps_of(ledger, "s") for message in step.messages]


@UNHURRIED
@given(sessions())
@example(['{"type":"user","uuid":"a","parentUuid":"a","message":{"role":"user","content":"x"}}'] * 2)
def test_import_keeps_every_message_in_a_sound_ledger(lines: list[str]) -> None:
    transcript, ledger = attempted(lines), MemoryLedger()
    if transcript is None:
        return

    labels = bring(ledger, transcript)

    assert list(ledger.verify()) == []
    paths = [path for path in said_on(transcript) if path]
    kept = [
        [message for step in steps_of(ledger, label) if step.kind != "compaction" for message in step.messages]
        for label in labels
    ]
    for path in paths:
        expected = stored(path)
        assert any(found[len(found) - len(expected) :] == expected for found in kept)


@UNHURRIED
@given(sessions())
@example(
    [
        '{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]}}',
        '{"type":"compacted","payload":{}}',
    ]
)
def test_imported_session_sends_what_the_program_would_send(lines: list[str]) -> None:
    transcript, ledger = attempted(lines), MemoryLedger()
    if transcript is None or not transcript.entries:
        return
    labels = bring(ledger, transcript)

    read, expected = read_next(ledger, labels[0]), stored(context_of(transcript))

    if any(compaction.kept_from < compaction.at for compaction in transcript.compactions):
        # What is kept begins with a step, and has the input of its turn.
        assert repair_for_api(read, "neutral")[-1:] == repair_for_api(expected, "neutral")[-1:]
    else:
        assert repair_for_api(read, "neutral") == repair_for_api(expected, "neutral")


@UNHURRIED
@given(sessions())
def test_second_import_of_any_transcript_changes_nothing(lines: list[str]) -> None:
    transcript, ledger = attempted(lines), MemoryLedger()
    if transcript is None:
        return
    bring(ledger, transcript)
    before = [ledger.sessions(status=None), list(ledger.steps())]

    bring(ledger, transcript)

    assert [ledger.sessions(status=None), list(ledger.steps())] == before


@UNHURRIED
@given(st.sampled_from(sorted(LINES)), st.data())
def test_growing_import_equals_import_at_once(name: str, data: st.DataObject) -> None:
    lines = [json.dumps(line) for line in LINES[name]]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(lines) - 1), max_size=4)))
    at_once, step_by_step = MemoryLedger(), MemoryLedger()

    for cut in [*cuts, len(lines)]:
        transcript = attempted(lines[:cut])
        if transcript is not None:
            bring(step_by_step, transcript)
    whole = attempted(lines)
    assert whole is not None
    main = bring(at_once, whole)[0]

    assert list(step_by_step.verify()) == []
    said = [
        [message for step in live_steps_of(step_by_step, record.label) for message in step.messages]
        for record in step_by_step.sessions(status=None)
    ]
    assert [message for step in steps_of(at_once, main) for message in step.messages] in said
    assert all(record.payload.transcript for record in step_by_step.sessions(status=None))
