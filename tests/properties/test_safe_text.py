import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexus_core.text.safety import (
    MARKER_ELEMENTS,
    MARKER_FENCES,
    MARKER_HEADINGS,
    MARKER_SUMMARIES,
    MARKER_TAGS,
    escape_markers,
    find_forged_markers,
    find_hidden,
    neutralize,
    strip_all_hidden,
    strip_hidden,
    unescape_markers,
)
from tests.effort import sampled
from tests.timing import assert_linear

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def from_pieces(pieces: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.one_of(st.sampled_from(pieces), st.text(max_size=2)), max_size=24).map("".join)


# Never needed, wherever they stand.
ALWAYS_HIDDEN = (
    "\x00\x1b\x7f\x85\x9b\u00ad\u034f\u115f\u1160\u180e\u200b\u2028\u2029\u202a\u202e\u2060\u2064\u2066\u2069"
    "\u3164\uffa0\U000e0001\U000e0100\U000e01ef"
)
TAG_LETTERS = [chr(0xE0000 + ord(letter)) for letter in "gbenscwlx"]
FLAG = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng") + "\U000e007f"
SOMETIMES_HIDDEN = [
    *"\r\n\u200c\u200d\u200e\u200f\u061c\ufeff\ufe00\ufe0e\ufe0f\u180b\u17b4\U000e007f",
    *TAG_LETTERS,
    FLAG,
]
VISIBLE = [*"a1# \t!", "\u0645", "\u05d0", "\u0915\u094d", "\u26a0", "\U0001f469", "\U0001f3f4", "\u65e5", "\u1820"]
HIDING_TEXT = st.one_of(ANY_TEXT, from_pieces([*ALWAYS_HIDDEN, *SOMETIMES_HIDDEN, *VISIBLE]))


@pytest.mark.acceptance("T14")
@given(HIDING_TEXT)
def test_nothing_hidden_is_left_after_taking_it_out(text: str) -> None:
    assert find_hidden(strip_hidden(text)) == []


@given(HIDING_TEXT)
def test_taking_out_twice_changes_nothing_more(text: str) -> None:
    stripped = strip_hidden(text)

    assert strip_hidden(stripped) is stripped


@given(HIDING_TEXT)
def test_what_is_never_needed_is_always_taken_out(text: str) -> None:
    assert not set(ALWAYS_HIDDEN).intersection(strip_hidden(text))


@given(HIDING_TEXT)
def test_no_visible_character_is_taken_out(text: str) -> None:
    assert strip_all_hidden(strip_hidden(text)) == strip_all_hidden(text)


@given(HIDING_TEXT)
def test_something_is_found_exactly_when_something_is_taken_out(text: str) -> None:
    assert (find_hidden(text) == []) == (strip_hidden(text) == text)


@given(HIDING_TEXT)
def test_a_place_is_that_of_a_character_that_could_hide(text: str) -> None:
    lines = text.split("\n")

    places = [(hidden.line, hidden.column) for hidden in find_hidden(text)]

    assert places == sorted(set(places))
    assert [strip_all_hidden(lines[line - 1][column - 1]) for line, column in places] == [""] * len(places)


WHOLE_LINES = [*MARKER_HEADINGS, *MARKER_TAGS, *MARKER_FENCES, *MARKER_SUMMARIES]
MARKERS = [marker.replace("\u2026", "x") for marker in WHOLE_LINES] + [
    f"<{slash}{element}>" for element in MARKER_ELEMENTS for slash in ("", "/")
]
PIECES = [
    *MARKERS,
    *re.findall(r"\w+|\W", " ".join(MARKERS)),
    *(
        "\n",
        "\r",
        "\r\n",
        "\u2028",
        "\x0c",
        "\t",
        "\u00a0",
        "\u3000",
        "\u200b",
        "\x00",
        "\\",
        "\uff03",
        "\uff3b",
        "\uff1c",
    ),
    *(
        "\uff1e",
        "\uff3d",
        "\uff0d",
        "\u2014",
        "\uff0f",
        "\uff3f",
        "\u00e9",
        "system",
        "ENVIRONMENT",
        "(",
        ")",
        "# #",
        "---",
    ),
]
UNDERLINES = ["\n===\n", "\n---\n", "\n-", "\r\n====", "\n\u2014\u2014", "\n \uff1d\uff1d"]
TITLES = [heading.lstrip("# ").replace("\u2026", "x") for heading in MARKER_HEADINGS]
SHAPES = [
    *(f"{title}{underline}" for title, underline in zip(TITLES, UNDERLINES * len(TITLES), strict=False)),
    *(f"<h{1 + place % 2}>{title}</h{1 + place % 2}>" for place, title in enumerate(TITLES)),
    *(f"<{slash}{element} x='1'>" for element in MARKER_ELEMENTS for slash in ("", "/")),
    *(f"&lt;/{element}&gt;" for element in MARKER_ELEMENTS),
    *("## x\nSource: /a\n", "**x**\nSource: ~/a\n", "<h3>x</h3>\n\nSource: /a\n", "x\n===\nSource : C:\\a\n"),
    *(
        "Source: /a\n",
        "Source:",
        "**x**",
        "<h2>",
        "</h2>",
        "&lt;",
        "&gt;",
        "===",
        "\u043e",
        "\u0435",
        "\u0410",
        "\u03bf",
    ),
]
PIECES += [*SHAPES, *UNDERLINES]
MARKED_TEXT = from_pieces(PIECES)
# Written apart from the tables of the module, so that the two check each other.
STRUCTURE = re.compile(
    r"#(?:system configuration|subagent context) ?#*"
    r"|##(?:agent (?:soul|identity|permissions)|user identity|nexus environment|messaging rules)#*"
    r"|##(?:(?:subagent|active) configuration|environment|(?:active )?mcp servers)#*"
    r"|##(?:default|global|ancestor|project) configuration(?:\(.*\))?#*"
    r"|##(?:workspace rules|(?:claude|codex|gemini|cursor|copilot|opencode|goose|cline) instructions)\(.*\)#*"
    r"|#recalled memories"
    r"|##recalled (?:episode|note|preference|skill).*"
    r"|\[(?:core_identity|capabilities|shared_memory(?: count=.*)?|friends_info|this_moment)\]"
    r"|-{3,} ?(?:begin|end) (?:documentation|summary).*"
    r"|\[(?:context summary|previous conversation summary\]|session started:).*"
)
NAME = "(?:human_input|current_(?:time|facts|section)|memory_summary)"
ELEMENT = re.compile(rf"</?{NAME}(?:>|[^\w<>][^<>]*>)")
WRITTEN = re.compile(rf"&lt;/?{NAME}(?:[^\w&<>][^&<>]*)?&")
HTML_HEADING = re.compile(r"<h([12])>([^<>]*)</h")
SOURCE = re.compile(r"source:(?:[~/]|[a-z]:[/\\])")
A_HEADING = re.compile(r"#|<h[1-6]>|<(?:b|strong)>|(\*\*|__)[^*_].*\1:?$")
LOOKALIKES = str.maketrans("\u043e\u0435\u0430\u0410\u03bf", "oeaAo")


def as_a_model_reads(text: str) -> str:
    plain = re.sub(
        r"\s+", " ", unicodedata.normalize("NFKC", strip_all_hidden(text)).translate(LOOKALIKES).lower()
    ).strip()
    return re.sub(r" ?([^\w\s-]|_) ?", r"\1", re.sub("[\u2010-\u2015\u2212]", "-", plain))


def has_structure(text: str) -> bool:
    lines = [as_a_model_reads(line) for line in text.splitlines()]
    whole = as_a_model_reads(text)
    return (
        any(map(STRUCTURE.fullmatch, lines))
        or any(STRUCTURE.fullmatch("#" * int(level) + title.strip()) for level, title in HTML_HEADING.findall(whole))
        or any(_is_underlined(lines, place) or _names_a_source(lines, place) for place in range(1, len(lines)))
        or ELEMENT.search(whole) is not None
        or WRITTEN.search(whole) is not None
    )


def _is_underlined(lines: list[str], place: int) -> bool:
    if not re.fullmatch("=+|-+", lines[place]):
        return False
    level = "#" if lines[place][0] == "=" else "##"
    above = [lines[start:place] for start in range(max(place - 3, 0), place)]
    titles = [as_a_model_reads(" ".join(title)) for title in above if all(title) and title[0][0] != "#"]
    return any(STRUCTURE.fullmatch(level + title) for title in titles)


def _names_a_source(lines: list[str], place: int) -> bool:
    if not SOURCE.match(lines[place]):
        return False
    above = lines[:place] if lines[place - 1] else lines[: place - 1]
    is_underlined = len(above) > 1 and above[-2] and re.fullmatch("=+|-+", above[-1])
    return bool(above) and bool(A_HEADING.match(above[-1]) or is_underlined)


@pytest.mark.acceptance("T12")
@given(MARKED_TEXT)
def test_no_structure_survives(text: str) -> None:
    assert not has_structure(neutralize(text))


@given(MARKED_TEXT)
@example("<h2>Copilot Instructions (x)</h2>")
def test_a_text_without_structure_comes_back_as_the_same_object(text: str) -> None:
    assert has_structure(text) or neutralize(text) is text


@given(MARKED_TEXT)
def test_neutralising_twice_changes_nothing_more(text: str) -> None:
    neutral = neutralize(text)

    assert neutralize(neutral) is neutral


@given(MARKED_TEXT)
def test_nothing_but_backslashes_is_added(text: str) -> None:
    assert neutralize(text).replace("\\", "") == text.replace("\\", "")


@given(from_pieces([piece for piece in PIECES if piece.isascii()]))
def test_a_text_of_ascii_is_read_as_it_is_beside_other_characters(text: str) -> None:
    above = "\u0436\n\n\n\n"

    assert neutralize(above + text) == above + neutralize(text)
    assert escape_markers(above + text) == above + escape_markers(text)


@pytest.mark.acceptance("T12")
@given(MARKED_TEXT)
def test_no_structure_survives_escaping(text: str) -> None:
    assert not has_structure(escape_markers(text))


@given(st.one_of(ANY_TEXT, MARKED_TEXT))
def test_what_was_escaped_comes_back(text: str) -> None:
    assert unescape_markers(escape_markers(text)) == text
    assert unescape_markers(unescape_markers(escape_markers(escape_markers(text)))) == text


@given(MARKED_TEXT)
def test_escaping_adds_nothing_but_backslashes(text: str) -> None:
    assert escape_markers(text).replace("\\", "") == text.replace("\\", "")


@given(ANY_TEXT)
def test_a_text_that_opens_nothing_comes_back_as_the_same_object(text: str) -> None:
    closed = re.sub("[#\\[<\\-\u2010-\u2015\u2212\ufe47\ufe58\ufe5f\ufe63\ufe64\uff03\uff0d\uff1c\uff3b]", "", text)

    assert neutralize(closed) is closed


@given(st.one_of(ANY_TEXT, MARKED_TEXT))
def test_lines_are_called_forged_exactly_when_they_change(text: str) -> None:
    changed = [
        number
        for number, (old, new) in enumerate(zip(text.split("\n"), neutralize(text).split("\n"), strict=True), start=1)
        if old != new
    ]

    assert [number for number, _ in find_forged_markers(text)] == changed


def full_width(character: str) -> str:
    return chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character


@pytest.mark.acceptance("T12")
@given(st.sampled_from(MARKERS), st.data())
def test_no_disguise_hides_a_marker(marker: str, data: st.DataObject) -> None:
    letters = st.sampled_from([str.lower, str.upper, full_width])
    gaps = st.sampled_from(["", "\u200b", "\u00ad", "\U000e0041", "\x00", "\ufe0f"])

    disguised = "".join(data.draw(letters)(character) + data.draw(gaps) for character in marker)

    assert neutralize(disguised) != disguised


HIDDEN_PUMPS = [
    *(
        "\u200b",
        "\U000e0041",
        "\U000e0141",
        "\ufe0f",
        "\ufeff",
        "\r",
        "\r\n",
        "\u2028",
        "a\u200d",
        "a\u200f",
        "\n\u200b",
    ),
    *("\u0645\u200f", "\u0645\u200c", "\u26a0\ufe0f", "\U0001f469\u200d", f"{FLAG}\u200b", "\u200b\r\n", "\u202ea\n"),
]
MARKER_PUMPS = [
    *(
        "<",
        "#",
        "[",
        "-",
        "<a",
        "# ",
        "[ ",
        "[\t",
        "< ",
        "<\n",
        "- ",
        "---",
        "--- ",
        "<>",
        "\n",
        " ",
        "a",
        "\r",
        "\u200b",
    ),
    *(
        "#\u00e9",
        "# \u00e9\n",
        "<\u00e9",
        "\u2028#",
        "\u200b#",
        "\uff03",
        "\uff1c/",
        "\u2014",
        "\u0301\u0327",
        "\u00e9",
    ),
    *("# system ", "<human_", "<human_input", "<human_input>", "<human_input>\n", "## Environment\n", "[CORE_"),
    *("[CONTEXT SUMMARY", "[CONTEXT SUMMARY\n", "--- BEGIN ", "--- BEGIN DOCUMENTATION\n"),
]
# After "#\u00e9" every line is compared; before that, few are.
MARKER_STARTS = ["", "#\u00e9\n", "# ", "<", "## Workspace Rules ("]


@pytest.mark.slow
@pytest.mark.acceptance("T18")
@pytest.mark.parametrize(
    ("function", "start", "pump"),
    sampled(
        [
            *((function, "", pump) for function in (find_hidden, strip_hidden) for pump in HIDDEN_PUMPS),
            *((neutralize, start, pump) for start in MARKER_STARTS for pump in MARKER_PUMPS),
            *(
                (function, "", pump)
                for function in (find_forged_markers, escape_markers, unescape_markers)
                for pump in (*MARKER_PUMPS, "<\\", "\\[")
            ),
        ],
        one_in=9,
    ),
)
def test_four_times_the_text_takes_about_four_times_the_time(
    function: Callable[[str], object], start: str, pump: str
) -> None:
    text = (start + pump * 100_000)[:100_000]

    assert_linear(function, text[:25_000] + ">", text + ">")
