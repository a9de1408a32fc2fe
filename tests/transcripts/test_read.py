"""Which program wrote a transcript, and what happens to lines that are broken."""

from __future__ import annotations

import json

import pytest

from nexus_core.errors import MessageError
from nexus_core.transcripts.read import read_transcript
from tests.transcripts.support import SAMPLES, every_line, read, said, sample

CLAUDE = {"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": "hello"}}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("claude.jsonl", "claude-code"),
        ("codex.jsonl", "codex"),
        ("codex_bare.jsonl", "codex"),
        ("pi.jsonl", "pi"),
        ("gemini_cli.jsonl", "gemini-cli"),
        ("chatgpt.json", "chatgpt"),
        ("messages.jsonl", "messages"),
        ("chat.json", "messages"),
    ],
)
def test_the_content_tells_who_wrote_it(name: str, form: str) -> None:
    assert sample(name).format == form


@pytest.mark.parametrize(
    "name", ["claude.jsonl", "codex.jsonl", "codex_bare.jsonl", "gemini_cli.jsonl", "pi.jsonl", "messages.jsonl"]
)
def test_every_line_is_accounted_for_once(name: str) -> None:
    transcript = sample(name)

    number = len((SAMPLES / name).read_text(encoding="utf-8").splitlines())
    assert transcript.report.lines == number
    assert every_line(transcript) == list(range(1, number + 1))


@pytest.mark.parametrize("name", ["claude.jsonl", "codex.jsonl", "gemini_cli.jsonl", "pi.jsonl", "messages.jsonl"])
def test_nothing_of_a_file_is_lost(name: str) -> None:
    transcript = sample(name)

    entries = [*transcript.entries, *(entry for branch in transcript.branches for entry in branch.entries)]
    entries += [entry for compaction in transcript.compactions for entry in compaction.context]
    kept = [json.dumps(value) for entry in entries for value in entry.raw]
    kept += [json.dumps(line.value) for line in transcript.metadata]
    kept += [json.dumps(compaction.raw) for compaction in transcript.compactions]
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    assert {json.dumps(json.loads(line)) for line in lines} == set(kept)


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_the_same_text_gives_the_same_transcript(name: str) -> None:
    assert sample(name) == sample(name)


def test_lines_may_be_given_one_by_one() -> None:
    with (SAMPLES / "claude.jsonl").open(encoding="utf-8") as lines:
        assert read_transcript(lines) == sample("claude.jsonl")


def test_a_document_may_be_given_line_by_line() -> None:
    with (SAMPLES / "chat.json").open(encoding="utf-8") as lines:
        assert read_transcript(lines) == sample("chat.json")


def test_half_a_line_at_the_end_is_noted_and_skipped() -> None:
    text = (SAMPLES / "claude.jsonl").read_text(encoding="utf-8")

    transcript = read_transcript(text[:-50])

    assert said(transcript.entries) == said(sample("claude.jsonl").entries)
    (note,) = transcript.report.notes
    assert (note.line, note.text) == (28, "incomplete, as in a session that is being written")
    assert transcript.metadata[-1].kind == "incomplete"


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ('{"type": "user", "uu', "not JSON: unterminated string starting at column 18"),
        ("\x00\x00\x00\x00", "not JSON: expecting value at column 1"),
        ("[1, 2]", "expected an object, not a list"),
        ("42", "expected an object, not the number 42"),
        ("[" * 100_000, "nested too deeply, or a number with thousands of digits"),
    ],
    ids=["torn", "zeros", "list", "number", "bottomless"],
)
def test_a_broken_line_in_the_middle_costs_that_line(broken: str, why: str) -> None:
    transcript = read(CLAUDE, broken, CLAUDE | {"uuid": "b", "parentUuid": "a"})

    assert said(transcript.entries) == ["user: hello", "user: hello"]
    assert [(note.line, note.text) for note in transcript.report.notes] == [(2, why)]
    assert (transcript.metadata[0].kind, transcript.metadata[0].value) == ("broken", broken)


def test_a_broken_first_line_costs_that_line() -> None:
    transcript = read('{"type": "sum', CLAUDE)

    assert said(transcript.entries) == ["user: hello"]
    assert transcript.report.outcomes == {"message": (2,), "skipped": (1,)}


def test_blank_lines_and_a_byte_order_mark_are_nothing() -> None:
    transcript = read_transcript("\ufeff" + json.dumps(CLAUDE) + "\r\n\r\n")

    assert transcript.report.outcomes == {"blank": (2,), "message": (1,)}


def test_a_text_may_hold_what_other_programs_take_for_the_end_of_a_line() -> None:
    line = json.dumps(CLAUDE | {"message": {"role": "user", "content": "a\u2028b\x85c"}}, ensure_ascii=False)

    assert read_transcript(f"{line}\n{line}").entries[0].message.content == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("text", "what", "path"),
    [
        ("", "the transcript is empty", "notes.md"),
        (" \n\n", "the transcript is empty", "notes.md"),
        ("# Notes\n\nSome words.\n", "not a transcript that Nexus knows", "notes.md:1"),
        ("<!DOCTYPE html>\n<html></html>\n", "not a transcript that Nexus knows", "notes.md:1"),
        ("7", "not a transcript that Nexus knows", "notes.md:1"),
        ('{"a": 1}', "not a transcript that Nexus knows", "notes.md:1"),
        ('{"a": 1}\n{"b": 2}\n', "not a transcript that Nexus knows", "notes.md:1"),
        ('{"type": "user"\n{"type": "us\n', "not JSON: expecting ',' delimiter at column 16", "notes.md:1"),
        ('{"a": 1,\n"b": 2\n{"a": 1,\n', "not JSON: expecting ',' delimiter at column 7", "notes.md:2"),
        ('{\n"a": {}\n{"b": 1}\n}', "not JSON: expecting ',' delimiter at column 8", "notes.md:2"),
        ('[{"a": 1\n{"b": 1\n]', "not JSON: expecting ',' delimiter at column 1", "notes.md:2"),
        ('[\n {"role": "user", "content": "hello"},\n', "not JSON: expecting value at column 39", "notes.md:2"),
        ("[" * 200 + "]" * 200, "nested deeper than 100 levels", "notes.md"),
        ("[" * 200_000, "nested too deeply, or a number with thousands of digits", "notes.md"),
    ],
)
def test_what_is_no_transcript_is_refused_with_its_place(text: str, what: str, path: str) -> None:
    with pytest.raises(MessageError) as caught:
        read_transcript(text, "notes.md")

    assert (caught.value.what, caught.value.path) == (what, path)


def test_without_a_name_the_line_is_still_told() -> None:
    with pytest.raises(MessageError) as caught:
        read_transcript('{"a": 1}')

    assert caught.value.path == "line 1"
