from __future__ import annotations

import json
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.plugin.text import MAX_HEAD_CHARACTERS, FrontMatterError, read_front_matter


def read(head: str) -> dict[str, Any]:
    return read_front_matter(f"---\n{head}\n---\nbody\n").values


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("name: deploy", {"name": "deploy"}),
        ("name: deploy  # of late", {"name": "deploy"}),
        ("name:   two words ", {"name": "two words"}),
        ("colour: a#b", {"colour": "a#b"}),
        ("description: Use it when: asked, e.g. at 10:30", {"description": "Use it when: asked, e.g. at 10:30"}),
        ("homepage: https://example.org/x:y", {"homepage": "https://example.org/x:y"}),
        ("name: 'it''s'", {"name": "it's"}),
        ('name: "a \\"b\\" \\u00e9\\n\\x41"', {"name": 'a "b" é\nA'}),
        ('name: "\\ud83d\\ude00 \\ud83d"', {"name": "😀 \ufffd"}),
        ('"quoted key": x', {"quoted key": "x"}),
        ("version: 1.10\nenabled: no\nborn: 2024-01-01", {"version": "1.10", "enabled": "no", "born": "2024-01-01"}),
        ("a:\nb: ~\nc: null", {"a": "", "b": "", "c": ""}),
        ("# a comment\n\nname: x\n  # another\n", {"name": "x"}),
        ("", {}),
    ],
)
def test_names_and_texts_are_read_as_they_are_meant(head: str, values: dict[str, object]) -> None:
    assert read(head) == values


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ("text: one\n  two\n  three: four", "one two three: four"),
        ("text:\n  one\n  two", "one two"),
        ("text: >\n  one\n  two\n\n  three", "one two\nthree"),
        ("text: >-\n  one\n  # two", "one # two"),
        ("text: |\n  one\n    two\n\n  three", "one\n  two\n\nthree"),
        ("text: |+\n  one\n", "one"),
        ('text: "one\n  two"', "one two"),
        ("text: 'one\n\n  two'", "one\ntwo"),
        ("text:\n  'one'", "one"),
    ],
)
def test_a_text_may_go_on_for_several_lines(head: str, text: str) -> None:
    assert read(f"{head}\nname: x") == {"text": text, "name": "x"}


@pytest.mark.parametrize(
    "head",
    [
        "requires:\n  env: [A, B]\n  bins: ['c']",
        "requires:\n  env:\n    - A\n    - B\n  bins:\n  - c",
        'requires: {"env": ["A", "B"], "bins": ["c"]}',
        "requires: {env: [A, B], bins: [c]} # all of them",
        "requires:\n  { env: [A,\n    B,\n    ], bins: [\n  c] }",
        'requires:\n  "env": ["A", "B"]\n  bins: [c,]',
    ],
)
def test_lists_and_objects_may_be_written_in_many_ways(head: str) -> None:
    assert read(f"name: x\n{head}\nlast: y") == {
        "name": "x",
        "requires": {"env": ["A", "B"], "bins": ["c"]},
        "last": "y",
    }


def test_a_list_may_hold_objects() -> None:
    head = "install:\n  - id: brew\n    bins: [a]\n  - id: npm\n  - plain\n  -\n    id: late"

    assert read(head) == {"install": [{"id": "brew", "bins": ["a"]}, {"id": "npm"}, "plain", {"id": "late"}]}


def test_empty_lists_and_objects_are_empty() -> None:
    assert read("a: []\nb: {}\nc: [[], {}]\nd: {x: , y: }") == {
        "a": [],
        "b": {},
        "c": [[], {}],
        "d": {"x": "", "y": ""},
    }


def test_what_follows_the_head_is_the_guide() -> None:
    assert read_front_matter("---\nname: x\n---\n\n# Guide\n---\nend\n").body == "\n# Guide\n---\nend\n"
    assert read_front_matter("---\nname: x\n...").body == ""


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("# Guide", "does not start with a '---' line", 1),
        ("", "does not start with a '---' line", 1),
        (" ---\nname: x\n---", "does not start with a '---' line", 1),
        ("---\nname: x\n", "that ends its front matter is missing", 1),
        ("---\n" + "#\n" * 300 + "---", "that ends its front matter is missing or too far down", 1),
        ("---\n#" + "x" * MAX_HEAD_CHARACTERS + "\n---", "that ends its front matter is missing or too far down", 1),
        ("---\nname: x\njust words\n---", "'just words' is not of the form 'name: value'", 3),
        ("---\n- a\n- b\n---", "'- a' is not of the form 'name: value'", 2),
        ("---\nname: x\nname: y\n---", "repeats the key 'name'", 3),
        ("---\na: {b: 1, b: 2}\n---", "repeats the key 'b'", 2),
        ("---\na:\n    b: 1\n  c: 2\n---", "'c: 2' is indented", 4),
        ("---\na: 1\n\n\tb: 2\n---", "is indented with a tab", 4),
        ("---\n  a: 1\nb: 2\n---", "'b: 2' is indented less", 3),
        ("---\na: &x 1\n---", "begins with '&'; put it in quotes", 2),
        ("---\nb: 1\na: *x\n---", "begins with '*'; put it in quotes", 3),
        ("---\na: !!python/object x\n---", "begins with '!'; put it in quotes", 2),
        ("---\na: @x\n---", "begins with '@'; put it in quotes", 2),
        ("---\na: {b: !!set {}}\n---", "begins with '!'; put it in quotes", 2),
        ("---\na: b\n? [c]\n: d\n---", "'? [c]' is not a name", 3),
        ("---\na: b\n--- c\n---", "'--- c' comes after the end of the front matter", 3),
        ("---\na: b\nc: \x07\n---", "has a character that YAML does not allow", 3),
        ('---\na: "\\UFFFFFFFF"\n---', "has an invalid escape", 2),
        ("---\na: 'open\nb: 1\n---", "is never closed", 2),
        ("---\na: [1, 2\nb: 1\n---", "'a: [1, 2' expected ',' or ']'", 2),
        ("---\na: [1 }\n---", "expected ',' or ']', but got '}'", 2),
        ("---\na: [,]\n---", "expected the node content, but found ','", 2),
        ("---\na: [1] b\n---", "is not expected here, after the end of a value", 2),
        ("---\na: 'x' y\n---", "is not expected here, after the end of a value", 2),
        ("---\na: " + "[" * 40 + "\n---", "nested too deep", 2),
        ("---\na: [" + "1," * 301 + "]\n---", "has more than 300 values", 2),
        ("---\n" + "\n".join(f"{' ' * depth}a:" for depth in range(40)) + "\n---", "is nested too deep", 19),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(FrontMatterError) as caught:
        read_front_matter(text)

    assert message in str(caught.value)
    assert caught.value.line == line


# YAML refuses noncharacters, and takes two more characters than JSON for the end of a line.
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"]), max_size=12).map(
    str.strip
)
VALUES = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(WORDS, VALUES, max_size=4), st.booleans())
def test_json_is_read_as_json(values: dict[str, object], is_spread: bool) -> None:
    document = json.dumps({"value": values}, ensure_ascii=not is_spread, indent=2 if is_spread else None)
    body = "\n".join(f"  {line}" for line in document.splitlines())

    assert read(f"metadata:\n{body}") == {"metadata": {"value": values}}


@given(st.text(max_size=300) | st.lists(st.sampled_from([*"-:[]{}'\"#|>&,\n\t ab"]), max_size=120).map("".join))
def test_any_text_is_read_or_refused(head: str) -> None:
    text = f"---\n{head}\n---\nbody"
    line = 1
    try:
        read_front_matter(text)
    except FrontMatterError as error:
        line = error.line

    assert 1 <= line <= text.count("\n") + 1


@pytest.mark.acceptance("T16", "T18")
@pytest.mark.parametrize(
    "head",
    [
        "x: " + "[a," * 2600,
        "x: " + "[" * 8000,
        "{" * 8000,
        "\n".join(f"a{at}: [a,b,c,d,e,f,g,h]" for at in range(190)),
        "x: [" + "\n a,a,a,a,a,a,a,a,a,a," * 190,
        "x: '" + " " * 8000,
        'x: "' + "\\" * 8000,
        "x: " + "a: " * 2600,
        "x" + " " * 8000 + ":",
        ": " * 4000,
        "- " * 4000,
        "x: >\n" + " \n" * 190,
        "x: {" + "a" * 8000,
    ],
)
def test_no_head_takes_long(head: str) -> None:
    text = f"---\n{head}\n---\n"
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - what a profiler is given
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    with suppress(FrontMatterError):
        read_front_matter(text)
    sys.setprofile(None)

    assert calls <= 64 * len(text)
