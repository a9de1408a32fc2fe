"""The summarizer that needs no model: readable, bounded, always the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.compaction.extractive import extractive_summarizer, summarize_extractively
from nexus_core.thread.projection import create_summary_message
from nexus_core.tokens.estimator import estimate
from nexus_core.types.compaction import SummaryRequest
from nexus_core.types.messages import Image, Message, Text, ToolCall, ToolResult
from tests.compaction.threads import conversation, words
from tests.effort import examples
from tests.history.conversations import any_messages


def request(messages: list[Message], max_tokens: int = 500, **more: Any) -> SummaryRequest:
    return SummaryRequest(prompt="", messages=tuple(messages), instruction="", max_tokens=max_tokens, **more)


def test_each_turn_says_what_was_asked_done_and_achieved() -> None:
    messages = [
        Message("user", "Login is slow. Fix src/auth.py please."),
        Message(
            "assistant", (ToolCall("a", "bash", {"command": "pytest -q"}), ToolCall("b", "bash", {"command": "ls"}))
        ),
        Message(
            "tool", (ToolResult("a", "boom\nKeyError: 'user'\nexit code: 1", "bash"), ToolResult("b", "x", "bash"))
        ),
        Message("assistant", (ToolCall("c", "edit_file", {"path": "src/auth.py"}),)),
        Message("tool", (ToolResult("c", "ok", "edit_file"),)),
        Message("assistant", "I cached the session. Login is fast now."),
    ]

    assert summarize_extractively(request(messages), words) == (
        "- Asked: Login is slow. Fix src/auth.py please.\n"
        "  Changed: src/auth.py\n"
        "  Failed: pytest -q (exit 1): KeyError: 'user'\n"
        "  Outcome: I cached the session. Login is fast now."
    )


def ran(call: str, result: str, tool: str = "bash", *, is_error: bool = False) -> list[Message]:
    """A call of a tool with its result."""
    arguments = {"command": "pytest -q"} if tool == "bash" else {"path": "README.md"}
    return [
        Message("assistant", (ToolCall(call, tool, arguments),)),
        Message("tool", (ToolResult(call, result, tool, is_error=is_error),)),
    ]


@pytest.mark.parametrize("result", ["3 passed\nexit code: 0", "3 passed"])
def test_a_command_that_worked_in_the_end_has_not_failed(result: str) -> None:
    messages = [Message("user", "Fix it."), *ran("a", "boom\nexit code: 1"), *ran("b", result)]

    assert "Failed" not in summarize_extractively(request(messages), words)
    assert "Failed: pytest -q (exit 1)" in summarize_extractively(
        request([*messages, *ran("c", "exit code: 1")]), words
    )


@pytest.mark.parametrize(("is_error", "told"), [(False, ""), (True, "  Failed: read_file (failed)")])
def test_a_file_that_speaks_of_exit_codes_is_no_failure(is_error: bool, told: str) -> None:
    messages = [Message("user", "Read it."), *ran("a", "Ends with exit code 5.", "read_file", is_error=is_error)]

    assert [line for line in summarize_extractively(request(messages), words).split("\n") if "Failed" in line] == [
        told
    ] * is_error


def test_the_newest_turns_are_told_in_full_and_older_ones_by_what_was_asked() -> None:
    lines = summarize_extractively(request(conversation(20), 250), words).split("\n")

    assert lines[0].startswith("- (left out: ")
    asked = [line for line in lines if line.startswith("- Asked")]
    assert "part19" in asked[-1]
    assert 4 < len(asked) < 20
    assert 0 < sum("Outcome" in line for line in lines) < len(asked)


def test_what_somebody_asked_for_is_known_in_a_language_without_blanks() -> None:
    login, cache = "\u767b\u5f55\u5931\u8d25\u4e86", "\u7f13\u5b58\u592a\u6162\u4e86"
    messages = [
        each
        for place in range(20)
        for each in (
            Message("user", f"{login if place == 3 else cache}\u3002\u8bf7\u770b{place}\u3002"),
            Message("assistant", f"\u4fee\u597d{place}\u3002"),
        )
    ]

    told = summarize_extractively(request(messages, 20, focus="\u767b\u5f55"), words)

    assert f"- Asked: {login}\u3002 \u8bf7\u770b3\u3002\n  Outcome: \u4fee\u597d3\u3002" in told


def test_what_somebody_asked_for_is_told_in_full() -> None:
    messages = conversation(30)
    messages[0] = Message("user", "Remember the zebra migration in src/part0.py, it must run on Sunday.")

    without = summarize_extractively(request(messages, 200), words)
    focused = summarize_extractively(request(messages, 200, focus="zebra migration"), words)

    assert "zebra" not in without
    assert "zebra migration" in focused


def test_what_was_summarised_before_stays_in_part() -> None:
    earlier = "\n".join(f"- Asked: about the login of customer {number}" for number in range(50))

    text = summarize_extractively(request(conversation(10), 150, previous=earlier), words)

    assert "customer" in text.split("\n")[0]
    assert "part9" in text
    assert words(text) <= 150


def test_a_chain_of_summaries_does_not_collect_notes_about_what_is_left_out() -> None:
    text = ""
    for _ in range(6):
        text = summarize_extractively(request(conversation(20), 200, previous=text), words)

    assert text.count("left out") == 1


def test_summaries_and_instructions_are_no_turns() -> None:
    messages = [create_summary_message("Before."), Message("system", "Be kind."), Message("user", "Go on.")]

    assert summarize_extractively(request(messages), words) == "- Asked: Go on."


def test_a_long_question_is_told_by_its_first_sentence_and_what_it_is_about() -> None:
    filler = " ".join(f"Sentence number {number} says nothing of interest." for number in range(100))
    messages = [
        Message("user", f"Fix the parser. {filler} The parser fails on tabs."),
        Message("assistant", "parser fixed"),
    ]

    text = summarize_extractively(request(messages), words)

    assert text.startswith("- Asked: Fix the parser.")
    assert "The parser fails on tabs." in text
    assert len(text) < 400


def test_words_before_a_cut_are_not_an_outcome() -> None:
    cut = [
        Message("user", "Fix the colors."),
        Message("assistant", "The problem is that both terminals map gray. The problem is clear."),
        *ran("a", "ok"),
        Message("assistant", (Text("Now let me finish the theme properly:"), ToolCall("b", "bash", {}))),
        Message("tool", (ToolResult("b", "ok", "bash"),)),
    ]

    assert summarize_extractively(request(cut), words) == (
        "- Asked: Fix the colors.\n  So far: The problem is that both terminals map gray."
    )


def test_code_and_headings_are_not_torn_out_of_a_reply() -> None:
    reply = (
        "Perfect!\n\n## Changes\n\n```ts\nconst a = 1;\n```\n- `dark.json` is darker\n\nBoth themes render alike now."
    )

    text = summarize_extractively(request([Message("user", "Go on."), Message("assistant", reply)]), words)

    assert text == "- Asked: Go on.\n  Outcome: `dark.json` is darker; Both themes render alike now."


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (
            "The theme falls back.\n1. On startup (`initTheme`)\n2. **During a switch (`",
            "The theme falls back. On startup (`initTheme`)",
        ),
        ("Updated:\n- link (green)\n- bullet (blue)", "Updated: link (green); bullet (blue)"),
        ("Ready to tag. Run this:\n```sh\ngit tag\n```", "Ready to tag."),
        (
            "The package has another API. It was never committed. Did we revert",
            "The package has another API. It was never committed.",
        ),
    ],
)
def test_an_outcome_has_no_torn_sentences(reply: str, outcome: str) -> None:
    text = summarize_extractively(request([Message("user", "Go on."), Message("assistant", reply)]), words)

    assert text == f"- Asked: Go on.\n  Outcome: {outcome}"


@pytest.mark.parametrize("reply", ["Perfect", "Perfect!", "Okay."])
def test_a_single_word_is_not_an_outcome(reply: str) -> None:
    text = summarize_extractively(request([Message("user", "Go on with it."), Message("assistant", reply)]), words)

    assert text == "- Asked: Go on with it."


def test_sentences_come_before_items_of_lists_in_an_outcome() -> None:
    items = "".join(f"- **Part {number}**: the parser reads the parser of parser {number}\n" for number in range(20))
    reply = f"I split the parser in parts:\n{items}\nAll tests of it pass on both systems."

    text = summarize_extractively(request([Message("user", "Split it."), Message("assistant", reply)]), words)

    assert "Outcome: I split the parser in parts: **Part 0**" in text
    assert text.endswith("All tests of it pass on both systems.")


def test_a_pasted_diff_is_not_what_was_asked() -> None:
    asked = "+ 8 - **Colors**: Messages respect the\n token for text.\n + 9 - more\n\nremove that from the changelog"

    text = summarize_extractively(request([Message("user", asked), Message("assistant", "It is gone.")]), words)

    assert text == "- Asked: remove that from the changelog\n  Outcome: It is gone."


def test_nothing_is_left_of_a_previous_summary_instead_of_a_note_about_its_length() -> None:
    previous = "- Asked: " + "why " * 40

    text = summarize_extractively(request([], max_tokens=6, previous=previous), words)

    assert "characters left out" not in text


def test_a_long_question_is_cut_at_a_word_and_commands_to_the_program_are_not_asked() -> None:
    asked = f"/model\nplease {'make it so that this works ' * 20}\nError: no"

    text = summarize_extractively(request([Message("user", asked), Message("assistant", "Done, it works.")]), words)

    first, _, outcome = text.partition("\n")
    assert first.startswith("- Asked: please make it so")
    assert first.endswith((" this…", " works…", " make…", " it…", " so…", " that…"))
    assert outcome == "  Outcome: Done, it works."


def test_beside_the_evidence_only_outcomes_are_told() -> None:
    messages = [*conversation(2), Message("user", "And?"), *ran("z", "ok")]

    text = summarize_extractively(request(messages, evidence="What the user said: …"), words)

    assert text.count("- Asked: Please look at src/part") == 2
    assert all(word not in text for word in ("Changed", "Failed", "And?"))


def test_a_turn_without_an_outcome_is_counted_beside_the_evidence() -> None:
    summary = summarize_extractively(request([Message("user", "Start."), *ran("ls", "a")], evidence="- [1] Start."))

    assert summary == "- (left out: 1 turn)"


def test_it_asks_no_model() -> None:
    summarizer = extractive_summarizer()

    assert (summarizer.name, summarizer.asks_model, summarizer.window) == ("extractive", False, 0)
    assert summarizer.summarise(request(conversation(2)))


@pytest.mark.parametrize("count", [words, estimate, len])
@given(messages=any_messages, limit=st.integers(30, 200), previous=st.text(max_size=80), focus=st.text(max_size=10))
@settings(max_examples=examples(60), deadline=None)
def test_whatever_was_said_it_is_never_too_long_and_always_the_same(
    count: Any, messages: list[Message], limit: int, previous: str, focus: str
) -> None:
    given_request = request(messages, limit, previous=previous, focus=focus)

    text = summarize_extractively(given_request, count)

    assert count(text) <= limit
    assert text == summarize_extractively(given_request, count)


def test_a_sentence_that_is_said_over_and_over_is_told_once() -> None:
    asked = Message("user", "Look at the cache. " + "Please explain why it is slow. " * 40)

    text = summarize_extractively(request([asked, Message("assistant", "It is the cache. " * 20)]))

    assert text == "- Asked: Look at the cache. Please explain why it is slow.\n  Outcome: It is the cache."


def test_pictures_and_documents_without_a_word_are_told_as_such() -> None:
    picture = Image(mime="image/png", data="AAAA")
    messages = [Message("user", (picture, picture)), Message("assistant", "A cat. Another cat.")]

    assert (
        summarize_extractively(request(messages)) == "- Asked: (a picture) (a picture)\n  Outcome: A cat. Another cat."
    )


def test_room_that_no_turn_needs_is_for_what_was_summarised_before() -> None:
    previous = "\n".join(f"They fixed part {number}." for number in range(100))

    alone = summarize_extractively(request([], 200, previous=previous), words)
    beside = summarize_extractively(request([Message("user", "And part 3?")], 200, previous=previous), words)
    crowded = summarize_extractively(request(conversation(30), 200, previous=previous), words)

    assert alone.count("They fixed") == 40
    assert beside.count("They fixed") > 35
    assert beside.endswith("- Asked: And part 3?")
    assert crowded.count("They fixed") < 20


def test_a_summary_of_one_long_line_is_not_lost() -> None:
    previous = "It began with the login. " + "Then came more. " * 200 + "It ended with the cache."

    summary = summarize_extractively(request([Message("user", "And now?")], 100, previous=previous), words)

    assert summary.startswith("It began with the login.")
    assert "It ended with the cache." in summary
    assert words(summary) <= 100
