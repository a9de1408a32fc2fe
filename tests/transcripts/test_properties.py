"""Whatever a file holds, it is read, or refused as it should be; and every line of it is accounted for."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexus_core.errors import MessageError
from nexus_core.history.breakdown import break_down_tokens
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import read_transcript
from tests.dialects.support import JSON, spoiled
from tests.transcripts.support import AGENTS, SAMPLES, every_line

LINES = {
    path.name: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for path in sorted([*SAMPLES.glob("*.jsonl"), *AGENTS.glob("*.jsonl")])
}
SAMPLE_DOCUMENTS = sorted([*SAMPLES.glob("*.json"), *AGENTS.glob("*.json")])
DOCUMENTS = [json.loads(path.read_text(encoding="utf-8")) for path in SAMPLE_DOCUMENTS]
TORN = st.sampled_from(["", " ", "{", "}", "null", "\x00", '{"type": "user"', "[[]]", '"', "1e999", "NaN"])
OWN_LINES = {"grok.jsonl": 2}
"""Lines up to the first that only the program writes, if it is not the first."""
UNHURRIED = settings(deadline=None)


@st.composite
def sessions(draw: st.DrawFn) -> list[str]:
    """Lines of one program in any order, some spoiled, repeated, left out, torn, or of another program."""
    own = st.sampled_from(LINES[draw(st.sampled_from(sorted(LINES)))])
    foreign = st.sampled_from([line for lines in LINES.values() for line in lines])
    objects = (
        own | own | own | spoiled(own.map(_copy)) | foreign | st.dictionaries(st.text(max_size=3), JSON, max_size=2)
    )
    return draw(st.lists(objects.map(json.dumps) | TORN, max_size=12))


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def attempted(source: str | list[str]) -> Transcript | None:
    """What is read, or None where it is refused; anything else that goes wrong is a defect."""
    try:
        return read_transcript(source, "file")
    except MessageError as error:
        where, code = error.path, getattr(error, "code", "")
    assert where.startswith("file")
    assert code != "reader-failed"
    return None


@UNHURRIED
@given(sessions())
@example(['{"type":"user","uuid":"a","parentUuid":"a","message":{"role":"user","content":"x"}}'])
def test_every_line_of_any_file_is_accounted_for_once(lines: list[str]) -> None:
    transcript = attempted(lines)

    if transcript is not None and len([line for line in lines if line.strip()]) > 1:
        assert every_line(transcript) == list(range(1, len(lines) + 1))


@UNHURRIED
@given(sessions())
def test_what_is_read_can_be_counted_and_every_sum_is_the_total(lines: list[str]) -> None:
    transcript = attempted(lines)

    if transcript is not None:
        found = break_down_tokens(
            [entry.message for entry in transcript.context],
            SimpleTokenCounter(),
            system=transcript.system,
            tools=transcript.tools,
        )
        assert found.total == sum(share.tokens for share in found.roles) == sum(share.tokens for share in found.kinds)


@UNHURRIED
@given(sessions())
def test_no_message_is_on_two_paths(lines: list[str]) -> None:
    transcript = attempted(lines)

    if transcript is not None:
        paths = [transcript.entries, *(branch.entries for branch in transcript.branches)]
        # A line of Gemini CLI has a reply and the results of its calls, which are two entries of one path.
        used = [line for entries in paths for line in {line for entry in entries for line in entry.lines}]
        assert len(used) == len(set(used)) or transcript.report.lines == 1 or len(lines) == 1


@UNHURRIED
@example({"messages": [None]})
@given(st.sampled_from(DOCUMENTS).map(_copy).flatmap(lambda value: spoiled(st.just(value))) | JSON)
def test_any_document_is_read_or_refused(value: Any) -> None:
    for space in (None, 2):
        attempted(json.dumps(value, indent=space))


@UNHURRIED
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    attempted(text)


@UNHURRIED
@given(st.sampled_from(sorted(LINES)), st.data())
def test_a_file_that_is_cut_off_anywhere_is_read_up_to_there(name: str, data: st.DataObject) -> None:
    folder = SAMPLES if (SAMPLES / name).exists() else AGENTS
    text = (folder / name).read_text(encoding="utf-8")
    whole = sum(len(line) for line in text.splitlines(keepends=True)[: OWN_LINES.get(name, 1)])
    cut = data.draw(st.integers(whole, len(text)))

    transcript = read_transcript(text[:cut])

    assert every_line(transcript) == list(range(1, transcript.report.lines + 1))
    assert transcript.report.count("skipped") <= 1
