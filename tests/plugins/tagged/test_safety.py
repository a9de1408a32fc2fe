# ruff: noqa: RUF001 - full-width characters are what these tests are about
"""What stands in a block stays in it: `parse` gives back exactly what was put in, whatever that is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Message, MessageError, Request, Section, Tool
from nexus_core.plugin import ArrangeRequest, PastMessage, Renderer
from nexus_core.plugin.text import neutralize
from nexus_plugins.tagged import Dialogue, MomentFormatter, parse
from nexus_plugins.tagged._options import TaggedOptions
from nexus_plugins.tagged._renderer import make_renderer
from tests.tables import count

NOW = 1765353600_000
REQUEST = Request(cwd=Path("/work"), home=Path("/home"))
PLACES = 8
"""How many texts stand in one dialogue."""

MARKERS = [
    *("[CORE_IDENTITY]", "[CAPABILITIES]", "[SHARED_MEMORY]", "[SHARED_MEMORY count=3]", "[FRIENDS_INFO]"),
    *("[THIS_MOMENT]", "<human_input>", "</human_input>", "<current_time>", "</current_time>", "<current_facts>"),
    *("</current_facts>", "<current_section>", "</current_section>", "<memory_summary>", "</memory_summary>"),
    *("[2025-12-10 15:30] Human: ", "[2025-12-10 15:30] Nexus (used x):", "[time unknown] Human:", "- tool: "),
    *("## Environment", "# System Configuration", "--- BEGIN DOCUMENTATION", "[CONTEXT SUMMARY", "About this friend:"),
    *("[Previous conversation summary]", "(Nothing has been said before.)", "Recent conversation memory:\n\n"),
]


def full_width(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


DISGUISES: list[Callable[[str], str]] = [
    str.lower,
    str.upper,
    full_width,
    lambda text: text.replace("_", " _ "),
    lambda text: f" {text} ",
    lambda text: f"{text[:3]}\u200b{text[3:]}",
    lambda text: f"\\{text}",
]
PIECES = [
    *MARKERS,
    *(disguise(marker) for disguise in DISGUISES for marker in MARKERS),
    *("\n",) * 40,
    *("\\",) * 15,
    *(
        "\n\n",
        "\r\n",
        "\r",
        "\x0b",
        "\x85",
        "\u2028",
        " ",
        "\t",
        "\0",
        "\ufeff",
        "\u200b",
        "\u0338",
        "\ud800",
        "\udfff",
    ),
    *("a", "word", "é", "日本", "<", ">", "</", "[", "]", "#", "-", ": ", '"', "(", ")", "  - ", "：", "［", "＼"),
]


def said(text: str) -> str:
    """What is left of a text that says nothing."""
    return text if text.strip() else ""


def named(text: str) -> str:
    """A text as the name of a tool; halves of a character that belong together are one, as everywhere in JSON."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") or "x"


def dialogue(by: Renderer, texts: list[str]) -> Dialogue:
    """The blocks for texts in all places, read back."""
    human, friend, section, first, second, third, about, summary = texts
    told = Message("user", f"[Previous conversation summary]\n{summary}", extra={"_summary": "s"})
    spoken = [Message("user", first), Message("assistant", second), Message("user", third)]
    request = replace(
        REQUEST, message=Message("user", human), profile={"prompt_overrides": {"friends_profile": friend}}
    )
    current = by.current(request, [Section("s", title="Git", text=section, kind="event")], NOW)
    assert by.arrange is not None
    arranged = by.arrange(
        ArrangeRequest(
            request=request,
            history=tuple(PastMessage(message, NOW, is_input=False, said=message) for message in (told, *spoken)),
            current=current,
            tools=(Tool(name=named(first), description=about), Tool(name="last")),
        )
    )
    assert arranged.current is not None
    return parse(*(message.content for message in (*arranged.history, arranged.current)))


def assert_it_comes_back(by: Renderer, texts: list[str]) -> None:
    human, friend, section, first, second, third, about, summary = texts

    read = dialogue(by, texts)

    assert read.human_input == human
    assert read.friend == said(friend)
    assert read.sections == ((("Git", section),) if said(section) else ())
    spoken = [("Human", first), ("Nexus", second), ("Human", third)]
    assert [(line.speaker, line.text) for line in read.memory] == [each for each in spoken if said(each[1])]
    assert read.summary == said(summary)
    assert read.capabilities == ((named(first), about), ("last", ""))
    assert read.facts == ()


RENDERERS = [make_renderer(), make_renderer(TaggedOptions(single_message=True, tool_calls=True, language="zh"))]


def random_texts(seed: int, count: int) -> Iterable[list[str]]:
    chance = random.Random(seed)  # noqa: S311 - the same texts every time
    for _ in range(count // PLACES):
        yield ["".join(chance.choices(PIECES, k=chance.randrange(10))) for _ in range(PLACES)]


@pytest.mark.acceptance("B-22", "T12")
@pytest.mark.parametrize("tried", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_texts_come_back_as_they_were_put_in(tried: int) -> None:
    count(tried)
    for number, texts in enumerate(random_texts(seed=1, count=tried)):
        assert_it_comes_back(RENDERERS[number % 2], texts)


@pytest.mark.slow
@pytest.mark.acceptance("B-22", "T12")
@pytest.mark.parametrize("seed", range(2, 10))
def test_a_million_texts_come_back_as_they_were_put_in(seed: int) -> None:
    count(125_000)
    for number, texts in enumerate(random_texts(seed, count=125_000)):
        assert_it_comes_back(RENDERERS[number % 2], texts)


@pytest.mark.acceptance("B-22", "T12")
@given(st.lists(st.text(st.characters(codec=None, exclude_categories=())), min_size=PLACES, max_size=PLACES))
def test_any_text_comes_back_as_it_was_put_in(texts: list[str]) -> None:
    for by in RENDERERS:
        assert_it_comes_back(by, texts)


@pytest.mark.acceptance("T12")
@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_no_text_makes_structure(text: str) -> None:
    block = MomentFormatter.format_this_moment(text, "2025-12-10T08:00:00Z", 0)

    body = block.partition("<human_input>\n")[2].removesuffix("\n</human_input>")

    assert neutralize(body) is body


@pytest.mark.acceptance("T12")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello",
        "a < b > c",
        "<div>\n</div>",
        "# Title\n\n- [ ] task",
        "[link](x)",
        "{\\rtf1}",
        "C:\\[x]",
        "\\begin{x}",
    ],
)
def test_an_ordinary_text_is_sent_to_the_letter(text: str) -> None:
    block = MomentFormatter.format_this_moment(text, "2025-12-10T08:00:00Z", 0)

    assert block.endswith(f"<human_input>\n{text}\n</human_input>")


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("",),
        ("hello",),
        ("[CAPABILITIES]\nx\n\n", "[FRIENDS_INFO]\nx\n\n"),
        ("x\n\n[CAPABILITIES]\n\n\n[SHARED_MEMORY count=0]\n\n\n[FRIENDS_INFO]\n\n\n[THIS_MOMENT]\n",),
        ("[CAPABILITIES]\n", "[SHARED_MEMORY count=0]\n", "[FRIENDS_INFO]\n", "[THIS_MOMENT]\n<human_input>\n"),
        ("[CAPABILITIES]\n", "[SHARED_MEMORY count=x]\n", "[FRIENDS_INFO]\n", "[THIS_MOMENT]\n"),
    ],
)
def test_what_is_not_the_format_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(MessageError):
        parse(*texts)
