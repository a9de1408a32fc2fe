"""What two calls have in common, and the first thing by which they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.request.diff import (
    RequestDifference,
    RequestPiece,
    RequestSide,
    build_call_content,
    build_side,
    compare_pieces,
    compare_requests,
)
from nexus_core.types.budget import Decision
from nexus_core.types.messages import Message, Text, Tool, ToolCall, ToolResult
from nexus_core.types.prompt import Placement, Source
from tests.request.contexts import GPT, LOOK, asks, brings, context_of, says, user

pieces = st.lists(
    st.builds(
        RequestPiece,
        kind=st.sampled_from(["tool", "section", "message"]),
        name=st.text("ab", max_size=2),
        digest=st.text("abcd", min_size=1, max_size=1),
        tokens=st.integers(0, 9),
        key=st.text("xy", max_size=1),
    ),
    max_size=8,
)


def digests(row: list[RequestPiece]) -> list[str]:
    return [piece.digest for piece in row]


@given(pieces)
def test_what_is_the_same_does_not_differ(row: list[RequestPiece]) -> None:
    total = sum(piece.tokens for piece in row)

    assert compare_pieces(row, row) == RequestDifference(None, len(row), total, 0, 0, ())


def test_the_text_before_the_first_difference_in_a_piece_is_stable() -> None:
    before = RequestPiece("system", "system prompt", "a", 100, text="x" * 75 + "old text")
    after = RequestPiece("system", "system prompt", "b", 100, text="x" * 75 + "n" * 25)
    message = RequestPiece("message", "message 0 (user)", "m", 10, text="Hi")

    found = compare_pieces([before, message], [after, message])

    assert (found.stable, found.resent, found.new) == (75, 10, 25)


@given(pieces, pieces)
def test_what_is_called_stable_is_a_beginning_of_both(before: list[RequestPiece], after: list[RequestPiece]) -> None:
    found = compare_pieces(before, after)

    assert digests(before[: found.common]) == digests(after[: found.common])
    assert found.stable == sum(piece.tokens for piece in after[: found.common])
    assert (found.first is None) == (digests(before) == digests(after))
    if found.first is not None and found.common < min(len(before), len(after)):
        assert before[found.common].digest != after[found.common].digest


@given(pieces, pieces)
def test_every_token_is_stable_billed_again_or_new(before: list[RequestPiece], after: list[RequestPiece]) -> None:
    found = compare_pieces(before, after)

    assert min(found.stable, found.resent, found.new) >= 0
    assert found.stable + found.resent + found.new == sum(piece.tokens for piece in after)


@given(pieces, pieces)
def test_the_first_difference_is_told_among_the_others(before: list[RequestPiece], after: list[RequestPiece]) -> None:
    found = compare_pieces(before, after)

    assert (found.first is None) == (not found.changes)
    assert found.first is None or found.first in found.changes


@given(pieces, pieces)
def test_whoever_only_adds_goes_on(before: list[RequestPiece], added: list[RequestPiece]) -> None:
    found = compare_pieces(before, [*before, *added])

    assert found.is_continuation
    assert found.common >= len(before)


def piece(name: str, digest: str = "", tokens: int = 10) -> RequestPiece:
    return RequestPiece("section", name, digest or name, tokens, key=name)


@pytest.mark.parametrize(
    ("before", "after", "told", "numbers"),
    [
        ("abc", "abc", None, (30, 0, 0)),
        ("abc", "aBc", ("b", "changed"), (10, 10, 10)),
        ("abc", "axbc", ("x", "new"), (10, 20, 10)),
        ("abc", "ac", ("b", "gone"), (10, 10, 0)),
        ("abc", "acb", ("c", "moved"), (10, 20, 0)),
        ("abc", "abcd", ("d", "new"), (30, 0, 10)),
        ("abc", "ab", ("c", "gone"), (20, 0, 0)),
    ],
)
def test_the_first_difference_says_what_became_of_it(
    before: str, after: str, told: tuple[str, str] | None, numbers: tuple[int, int, int]
) -> None:
    rows = [[piece(letter.lower(), letter) for letter in word] for word in (before, after)]

    found = compare_pieces(*rows)

    assert (found.first and (found.first.piece.name, found.first.outcome)) == told
    assert (found.stable, found.resent, found.new) == numbers


# ---- calls ----------------------------------------------------------------------------------------------------------


def section(name: str, digest: str, tokens: int = 100) -> Placement:
    return Placement(
        zone="static",
        kind="workspace",
        name=name,
        title=name.title(),
        source=Source(uri=f"/project/{name}.md", layer="local"),
        tokens=tokens,
        digest=digest,
        decision=Decision(action="kept", rule="always", first=0, last=0),
    )


def side(*sections: Placement, system: str = "Be brief.", **fields: Any) -> RequestSide:
    context = context_of([user(), says()], system=system, place=lambda: sections, **fields)
    return build_side(build_call_content(context))


def test_the_first_section_that_is_another_is_named_with_its_file() -> None:
    before = side(section("rules", "1"), section("style", "1"), system="old")
    after = side(section("rules", "1"), section("style", "2"), system="new")

    first = compare_requests(before, after).first

    assert first is not None
    assert (first.outcome, first.piece.kind, first.piece.name) == ("changed", "section", "Style")
    assert first.piece.source is not None
    assert first.piece.source.uri == "/project/style.md"


def test_what_stands_before_a_changed_section_is_stable_and_what_stands_behind_it_is_billed_again() -> None:
    before = side(section("rules", "1"), section("style", "1"), system="old")
    after = side(section("rules", "1"), section("style", "2"), system="new")

    found = compare_requests(before, after)

    assert found.stable == 100  # the rules; no tool was counted
    assert found.new == 100  # the style
    assert found.resent == 2000 - 200 + 2 * 2000  # headings, messages


def test_another_way_to_put_the_same_sections_into_words_is_the_renderers() -> None:
    before, after = (side(section("rules", "1"), system=text) for text in ("# Rules", "[RULES]"))

    found = compare_requests(before, after)

    assert found.first is not None
    assert (found.first.piece.kind, found.first.outcome) == ("system", "changed")
    assert found.stable == 0


def test_every_model_has_a_cache_of_its_own() -> None:
    found = compare_requests(side(), side(model=GPT))

    assert found.first is not None
    assert (found.first.piece.kind, found.first.piece.name) == ("model", GPT.name)
    assert (found.stable, found.new) == (0, 0)


def test_tools_are_read_before_the_system_prompt() -> None:
    found = compare_requests(side(), side(tools=(LOOK, Tool(name="grep")), system="other"))

    assert found.first is not None
    assert (found.first.piece.kind, found.first.piece.name, found.first.outcome) == ("tool", "grep", "new")


def test_the_order_of_a_tools_parameters_counts_because_a_model_reads_it() -> None:
    def offered(*names: str) -> RequestSide:
        return side(tools=(replace(LOOK, parameters={"properties": {name: {} for name in names}}),))

    found = compare_requests(offered("a", "b"), offered("b", "a"))

    assert found.first is not None
    assert found.first.piece.name == "look"


def messages_side(*messages: Message) -> RequestSide:
    return build_side(build_call_content(context_of(messages)))


def test_marks_for_a_cache_and_notes_of_ours_make_no_difference() -> None:
    plain, marked = Text("Why?"), Text("Why?", {"cache_control": {"type": "ephemeral"}})
    before = messages_side(Message("user", [plain]))
    after = messages_side(Message("user", [marked], api="anthropic", extra={"_source": "slack"}))

    assert compare_requests(before, after).first is None


@pytest.mark.parametrize(
    "other",
    [
        Message("user", "Why not?"),
        Message("assistant", "Why?"),
        Message("user", [Text("Why?", {"citations": []})]),
        Message("user", "Why?", name="ann"),
        Message("assistant", [ToolCall("t", "look", {"path": "b"})]),
        Message("tool", [ToolResult("t", "b")]),
    ],
)
def test_whatever_a_model_reads_otherwise_is_a_difference(other: Message) -> None:
    assert compare_requests(messages_side(user("Why?")), messages_side(other)).first is not None


def test_a_conversation_that_goes_on_begins_with_all_that_was_said() -> None:
    said = [user(), asks("t1"), brings("t1")]

    found = compare_requests(messages_side(*said[:1]), messages_side(*said))

    assert found.is_continuation
    assert [change.piece.name for change in found.changes] == ["message 1 (assistant)", "message 2 (tool)"]
