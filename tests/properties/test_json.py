"""The JSON parser beside Python's own, and edits beside the same change to the value."""

import copy
import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from nexus_core.config.edit import remove_value, set_value
from nexus_core.config.jsonc import JsonSyntaxError, parse_json
from nexus_core.config.load import MAX_DEPTH, JsonValue, LineIndex, TextPosition, parse_plain_json
from nexus_core.config.pointers import pointer_to
from tests.conftest import CORPUS, ROOT
from tests.effort import examples

ANY_CHARACTER = st.characters(exclude_categories=["Cs"])
# Without a slash or a quote, so that what looks like a comment in a text is one.
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/*"), max_size=4)
BLANKS = ["", "", " ", "\n", "\t", "\r\n", "\n    "]
COMMENTS = ["// line\n", " /* block */ ", "/* two\nlines */", "// ,\r\n", "/**/"]
FRAGMENTS = [
    *'{}[],:"\\/*-+.eEuntf019 \n\t\x00',
    "null",
    "NaN",
    "-Infinity",
    "\\u0041",
    "\\ud83d\\ude00",
    "\\ud800",
    '"a":',
]
REAL_FILES = sorted(
    path
    for folder in (ROOT / "defaults", ROOT / "examples", ROOT / "tests/samples", CORPUS / "mcp")
    for path in folder.rglob("*.json")
)
APPEND = "-"
STRICTER = ("Duplicate key", "Lone surrogate", "Number out of range", "Nested deeper", "More than")
# A busy machine is no fault of what is tested.
UNHURRIED = settings(deadline=None)


def values(text: st.SearchStrategy[str] = PLAIN) -> st.SearchStrategy[Any]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=10,
    )


@st.composite
def laid_out(draw: st.DrawFn, value: Any, *, comments: bool) -> str:
    """A text for a value with blanks, and maybe comments and trailing commas, wherever they may be."""

    def gap() -> str:
        return draw(st.sampled_from(BLANKS + COMMENTS if comments else BLANKS))

    def joined(members: list[str], brackets: str) -> str:
        trailing = f",{gap()}" if comments and members and draw(st.booleans()) else ""
        return f"{brackets[0]}{gap()}{','.join(members)}{trailing}{brackets[1]}"

    def write(item: Any) -> str:
        if isinstance(item, list):
            return joined([f"{gap()}{write(each)}{gap()}" for each in item], "[]")
        if isinstance(item, dict):
            written = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{write(each)}{gap()}" for key, each in item.items()]
            return joined(written, "{}")
        return json.dumps(item)

    return gap() + write(value) + gap()


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, Any, bool]:
    """A text, its value, and whether it has comments."""
    value, comments = draw(values()), draw(st.booleans())
    if draw(st.booleans()):
        return json.dumps(value, indent=draw(st.sampled_from([None, 2, "\t"]))), value, comments
    return draw(laid_out(value, comments=comments)), value, comments


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with something taken out of it, put into it, or both, in a few places."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 2))
        text = text[:start] + draw(st.sampled_from(["", *FRAGMENTS])) + text[end:]
    return text


@st.composite
def mutations(draw: st.DrawFn) -> str:
    text = json.dumps(draw(values(st.text(ANY_CHARACTER, max_size=4))), ensure_ascii=draw(st.booleans()))
    return draw(damaged(text))


def members(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Every pointer into a value with what is there."""
    yield pointer, value
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from members(item, pointer_to(pointer, key))


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal to JSON; to Python, 1, 1.0 and True are too."""
    return json.dumps(one) == json.dumps(other)


@UNHURRIED
@given(values(st.text(ANY_CHARACTER)), st.booleans(), st.sampled_from([None, 0, 2, "\t"]))
def test_what_python_writes_is_read_back(value: Any, ascii_only: bool, indent: int | str | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    assert same(parse_json(text).value, value)
    assert same(parse_json(text, comments=True).value, value)


@UNHURRIED
@given(documents())
def test_comments_and_layout_change_no_value(document: tuple[str, Any, bool]) -> None:
    text, value, comments = document

    assert same(parse_json(text, comments=comments).value, value)


class Verdict(NamedTuple):
    """What becomes of a text: its value, or why and where it is refused."""

    value: Any
    message: str = ""
    offset: int = -1
    position: TextPosition | None = None


def ours(text: str) -> Verdict:
    try:
        return Verdict(parse_json(text).value)
    except JsonSyntaxError as error:
        return Verdict(None, error.message, error.offset, LineIndex(text).position(error.offset))


def theirs(text: str) -> Verdict:
    """What Python's json says without its extensions."""

    def refuse(constant: str) -> NoReturn:
        raise json.JSONDecodeError("Expecting value", text, text.index(constant))

    try:
        return Verdict(json.loads(text, parse_constant=refuse))
    except json.JSONDecodeError as error:
        return Verdict(None, error.msg, error.pos, TextPosition(error.lineno, error.colno))
    except ValueError as error:  # an integer with too many digits
        return Verdict(None, str(error))


def require_same(text: str) -> None:
    """Hold our verdict against Python's, except where ours is stricter or better by choice."""
    verdict, expected = ours(text), theirs(text)
    if verdict.message.startswith(STRICTER):
        return
    assert same(verdict.value, expected.value)
    assert bool(verdict.message) == bool(expected.message)
    # Before 3.13, Python points elsewhere at a trailing comma. And it takes an escape at the very end of a text for an
    # incomplete one.
    is_newer = verdict.message.startswith("Illegal trailing comma") and sys.version_info < (3, 13)
    is_incomplete = expected.message == "Invalid \\uXXXX escape" and expected.offset + len("uXXXX") == len(text)
    if is_newer or is_incomplete or any(word in text for word in ("NaN", "Infinity")):
        return
    assert (verdict.message, verdict.offset) == (expected.message, expected.offset)
    if "\r" not in text:  # to Python, that ends no line
        assert verdict.position == expected.position


@pytest.mark.acceptance("R13")
@UNHURRIED
@given(mutations())
@example('{"a":1,"a":2}')
@example("[1,]")
@example("[1 2]")
@example('"\\u0041')
@example("[NaN]")
def test_a_damaged_text_is_taken_or_refused_as_by_python_at_the_same_place(text: str) -> None:
    require_same(text)


@settings(UNHURRIED, max_examples=examples(300))
@given(st.data())
def test_a_damaged_file_is_taken_or_refused_as_by_python_at_the_same_place(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(REAL_FILES))

    text = data.draw(damaged(path.read_text(encoding="utf-8")))

    require_same(text)


@UNHURRIED
@given(mutations() | documents().map(lambda document: document[0]))
def test_the_fast_reader_takes_nothing_that_the_parser_would_not_take_alike(text: str) -> None:
    quick = parse_plain_json(text)

    if quick is not None:
        assert same(quick.value, parse_json(text).value)


@UNHURRIED
@given(values(st.text(ANY_CHARACTER)), st.sampled_from([None, 2, "\t"]))
def test_the_fast_reader_takes_what_is_plain(value: Any, indent: int | str | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    assume(text.count("{") + text.count("[") <= MAX_DEPTH and "\\ud" not in text.lower())

    quick = parse_plain_json(text)

    assert quick is not None
    assert same(quick.value, value)


@UNHURRIED
@given(documents())
def test_the_fast_reader_finds_every_place_that_the_parser_finds(document: tuple[str, Any, bool]) -> None:
    text, value, comments = document
    quick = parse_plain_json(text, comments=comments)
    assume(quick is not None)
    assert quick is not None

    parsed = parse_json(text, comments=comments)

    for pointer, _ in members(value):
        assert (quick.span(pointer), quick.position(pointer)) == (parsed.span(pointer), parsed.position(pointer))


@UNHURRIED
@given(documents())
def test_every_value_stands_where_its_span_says(document: tuple[str, Any, bool]) -> None:
    text, value, comments = document

    parsed = parse_json(text, comments=comments)

    for pointer, item in members(value):
        span = parsed.span(pointer)
        assert span is not None
        assert same(parse_json(text[span.start : span.end], comments=comments).value, item)
        assert text[span.key] == '"' if span.key != span.start else text[span.start] not in " \t\r\n/"


@UNHURRIED
@given(st.text(st.sampled_from("a\n\r\t𝄞\u2028")), st.data())
def test_a_position_is_what_one_gets_by_counting(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    assume(text[offset - 1 : offset + 1] != "\r\n")

    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")

    assert LineIndex(text).position(offset) == TextPosition(len(before), len(before[-1]) + 1)


def changed(value: Any, tokens: list[str], new: Any) -> Any:
    """A copy of a value with another one in it."""
    if not tokens:
        return new
    value = copy.copy(value)
    token, rest = tokens[0], tokens[1:]
    if isinstance(value, list):
        index = len(value) if token == APPEND else int(token)
        value[index:] = [changed({} if index == len(value) else value[index], rest, new), *value[index + 1 :]]
    else:
        value[token] = changed(value.get(token, {}), rest, new)
    return value


def unescaped(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def without(value: Any, tokens: list[str]) -> Any:
    value = copy.copy(value)
    key = int(tokens[0]) if isinstance(value, list) else tokens[0]
    if tokens[1:]:
        value[key] = without(value[key], tokens[1:])
    else:
        del value[key]
    return value


def count_comments(text: str) -> list[int]:
    return [text.count(comment.strip()) for comment in COMMENTS]


@UNHURRIED
@given(documents(), values(), st.data())
def test_a_value_is_replaced_and_every_other_byte_stays(
    document: tuple[str, Any, bool], new: JsonValue, data: st.DataObject
) -> None:
    text, value, comments = document
    pointer = data.draw(st.sampled_from([pointer for pointer, _ in members(value)]))
    span = parse_json(text, comments=comments).span(pointer)
    assert span is not None

    edited = set_value(text, pointer, new, comments=comments)

    assert same(parse_json(edited, comments=comments).value, changed(value, unescaped(pointer), new))
    assert edited.startswith(text[: span.start])
    assert edited.endswith(text[span.end :])


@UNHURRIED
@given(documents(), values(), PLAIN, st.lists(PLAIN.filter(lambda token: token != APPEND), max_size=2), st.data())
def test_a_value_is_added_and_every_other_byte_stays(
    document: tuple[str, Any, bool], new: JsonValue, key: str, below: list[str], data: st.DataObject
) -> None:
    text, value, comments = document
    containers = [(pointer, item) for pointer, item in members(value) if isinstance(item, dict | list)]
    assume(containers)
    pointer, container = data.draw(st.sampled_from(containers))
    assume(isinstance(container, list) or key not in container)
    pointer = pointer_to(pointer, APPEND if isinstance(container, list) else key)
    for token in below:
        pointer = pointer_to(pointer, token)

    edited = set_value(text, pointer, new, comments=comments)

    assert same(parse_json(edited, comments=comments).value, changed(value, unescaped(pointer), new))
    rest = iter(edited)
    # Blanks aside, because those in an empty object are moved when something comes into it.
    assert all(character in rest for character in "".join(text.split()))


@UNHURRIED
@given(documents(), st.data())
def test_a_value_is_removed_and_the_comments_beside_it_stay(
    document: tuple[str, Any, bool], data: st.DataObject
) -> None:
    text, value, comments = document
    pointers = [pointer for pointer, _ in members(value) if pointer]
    assume(pointers)
    pointer = data.draw(st.sampled_from(pointers))
    span = parse_json(text, comments=comments).span(pointer)
    assert span is not None

    edited = remove_value(text, pointer, comments=comments)

    assert same(parse_json(edited, comments=comments).value, without(value, unescaped(pointer)))
    rest = iter(text)
    assert all(character in rest for character in edited)
    outside = text[: span.key] + text[span.end :]
    assert count_comments(edited) == count_comments(outside)


@UNHURRIED
@given(documents(), values(), PLAIN)
def test_what_was_added_can_be_removed_again(document: tuple[str, Any, bool], new: JsonValue, key: str) -> None:
    text, value, comments = document
    assume(isinstance(value, dict) and key not in value)
    pointer = pointer_to("", key)

    edited = remove_value(set_value(text, pointer, new, comments=comments), pointer, comments=comments)

    assert same(parse_json(edited, comments=comments).value, value)
