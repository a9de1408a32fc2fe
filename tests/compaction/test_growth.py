"""However hostile a text is, looking for facts in it and summarizing it take time in proportion to its length."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexus_core.compaction.compose import compose_summary
from nexus_core.compaction.extractive import summarize_extractively
from nexus_core.compaction.prompts import build_summarize_prompt
from nexus_core.memory.facts import extract_facts, find_code, find_dates, find_facts, merge_facts
from nexus_core.types.compaction import SummaryRequest, ThreadMessage
from tests.compaction.threads import conversation, said, words
from tests.effort import sampled
from tests.timing import assert_linear

PUMPS = {
    "prose": "the quick brown fox jumps over 12 ms src/a.py. ",
    "slashes": "/",
    "short names": "a/",
    "errors": "Error",
    "errors with colons": "error: ",
    "error lines": "error: x\n",
    "digits": "1",
    "grouped digits": "1,",
    "links": "http://",
    "named": "1a-",
    "dotted": "1.",
    "addresses": "a@",
    "backticks": "`",
    "code": "`a.",
    "dates": "2024-",
    "signs": " E>|",
    "hexadecimal": "ab0",
    "backslashes": "\\",
    "colons": "::",
}


@pytest.mark.acceptance("T18")
@pytest.mark.parametrize("pump", sampled(PUMPS, one_in=5))
def test_eight_times_the_text_takes_about_eight_times_as_long(pump: str) -> None:
    text = PUMPS[pump] * (200_000 // len(PUMPS[pump]))

    def find(given: str) -> list[object]:
        return [*find_facts(given), *find_code(given), *find_dates(given)]

    assert_linear(find, text[: len(text) // 8], text, times=8)


def thread(turns: int) -> list[ThreadMessage]:
    return [ThreadMessage(message, f"s{place}", position=place) for place, message in enumerate(conversation(turns))]


@pytest.mark.parametrize(
    "work",
    sampled(
        [
            extract_facts,
            lambda messages: merge_facts(extract_facts(messages), extract_facts(messages)),
            lambda messages: compose_summary(
                "prose", covered=messages, kept=messages[-20:], fact_limit=400, quote_limit=200, count=words
            ),
            lambda messages: build_summarize_prompt([each.message for each in messages], redact_secrets=True),
            lambda messages: summarize_extractively(request(messages), words),
        ],
        one_in=3,
    ),
    ids=["extract", "merge", "compose", "prompt", "summarize"],
)
def test_eight_times_the_turns_take_about_eight_times_as_long(work: Callable[[list[ThreadMessage]], object]) -> None:
    assert_linear(work, thread(50), thread(400), times=8)


def test_one_id_for_all_calls_costs_no_more() -> None:
    def repeated(count: int) -> list[ThreadMessage]:
        from tests.compaction.threads import called

        asked = [called("bash", {"command": f"make {n}"})[0] for n in range(count)]
        return [*asked, *(called("bash", {"command": "x"})[1] for _ in range(count)), said("done")]

    assert_linear(extract_facts, repeated(300), repeated(2400), times=8)


def request(messages: list[ThreadMessage]) -> SummaryRequest:
    said = tuple(each.message for each in messages)
    return SummaryRequest(prompt="", messages=said, instruction="", max_tokens=300)
