"""Markdown on a terminal: formatted, and nothing of it hidden."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.plugin import Console
from nexus_core.text.markdown import format_markdown
from tests.effort import examples


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def formatted(text: str, width: int = 60) -> str:
    return "\n".join(format_markdown(text, width, color=False))


def test_markdown_gets_its_usual_form() -> None:
    text = "# Title\n\nSome **bold** `code`.\n\n- one\n- two\n\n> quoted\n"

    assert formatted(text) == "Title\n\nSome bold code.\n\n • one\n • two\n\n▌ quoted"


def test_styles_are_those_of_markdown() -> None:
    (line,) = format_markdown("**bold** and `code`", 60, color=True)

    assert line == "\x1b[1mbold\x1b[0m and \x1b[36mcode\x1b[0m"


@pytest.mark.parametrize(
    "text",
    [
        '[our site](http://evil.example "really")',
        "![picture](file:///etc/passwd)",
        "<http://evil.example>",
        "a <!-- hidden --> b",
        "<div hidden>text</div>",
        "[//]: # (hidden instruction)",
        "[label]: http://evil.example",
        "&#27;[31m &#x202e; &lt;b&gt;",
    ],
)
def test_what_formatting_would_hide_is_shown_as_it_is_written(text: str) -> None:
    assert formatted(text) == text


def test_everything_behind_a_fence_is_shown() -> None:
    assert formatted('```python title="hidden"\nx = 1\n```') == '```python title="hidden"\n  x = 1\n```'


def test_quotes_too_deep_to_be_followed_are_shown_as_they_are_written() -> None:
    text = "> " * 60 + "hidden"

    assert formatted(text) == text


def test_line_breaks_of_a_message_stay() -> None:
    assert formatted("one\ntwo") == "one\ntwo"


def test_markup_of_the_library_is_shown_as_it_is() -> None:
    assert formatted("[bold red]x[/] :smile: [link=http://a.b]c[/link]") == (
        "[bold red]x[/] :smile: [link=http://a.b]c[/link]"
    )


def test_control_characters_are_escaped() -> None:
    out = Terminal()

    Console(out, io.StringIO()).markdown("a \x1b]0;owned\x07 \u202e`\x9b31m`\n```\n\x1b[2J\n```")

    text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert "\\x1b]0;owned\\x07" in text
    assert "\\x1b[2J" in text


def test_elsewhere_markdown_is_printed_as_it_is_written() -> None:
    out = io.StringIO()

    Console(out, io.StringIO()).markdown("# Title  \n\n**bold**\n")

    assert out.getvalue() == "# Title  \n\n**bold**\n"


BLOCKS = ("# ", "> ", "- ", "1. ", "```", "|", "---", "    ", "\n", "\n\n", "[g]: h", "<!-- f -->")
INLINE = ("**", "_", "`", "[a](b)", "![c](d)", "<e>", "&#27;", "~~", "word ", "*", "\\", "<http://i>")
PIECES = st.sampled_from(BLOCKS + INLINE)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_letter_is_lost_and_nothing_but_styles_is_added(text: str) -> None:
    shown = "\n".join(format_markdown(text, 40, color=True))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)

    assert "\x1b" not in plain
    for letter in set(filter(str.isalpha, text)):
        assert plain.count(letter) >= text.count(letter)
