# ruff: noqa: RUF001 - letters that look like others are what this module is about
r"""Nexus's own structural lines, and the one way to keep a text from forging them.

The model tells instructions from quoted content by headings, tags and fences that Nexus writes. A file, a tool
result or a person may hold the same lines; `neutralise` puts a backslash into those, which Markdown shows as the
literal text, and leaves everything else as it is. Letter case, extra white space, full-width forms, hidden
characters and letters of other scripts that look Latin make no difference: what a model takes for a marker is one.
A heading may be underlined (`===`, `---`) or HTML (`<h2>`), an element may have attributes or be written with
entities. A line `Source: /path` below any heading is a marker, too.

`neutralise` may be used on what was neutralised before, and changes nothing then. `escape` is for whoever reads the
text back: it adds a backslash to a marker that has some already, and `unescape` takes exactly that away.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from nexus_core.text.hidden import bare

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AGENTS = ("Claude", "Codex", "Gemini")
"""Other agents through whose eyes a prompt may be shown."""
INSTRUCTIONS = "{agent} Instructions ({place})"
"""The title of a text that such an agent would read."""

# One row for each marker, beginning with #, [ or ---; "…" stands for anything. A marker fills its line, unless its
# row ends in "…".
HEADINGS = (
    "# System Configuration",
    "## Default Configuration",
    "## Default Configuration (…)",
    "## Global Configuration",
    "## Global Configuration (…)",
    "## Ancestor Configuration",
    "## Ancestor Configuration (…)",
    "## Project Configuration",
    "## Project Configuration (…)",
    "# Subagent Context",
    "## Subagent Configuration",
    "## Workspace Rules (…)",
    "## Agent Soul",
    "## Agent Identity",
    "## User Identity",
    "## Agent Permissions",
    "## Nexus Environment",
    "## Messaging Rules",
    "## Environment",
    "## Active Configuration",
    "## MCP Servers",
    "## Active MCP Servers",
    *(f"## {INSTRUCTIONS.format(agent=agent, place='…')}" for agent in AGENTS),
)
TAGS = (
    "[CORE_IDENTITY]",
    "[CAPABILITIES]",
    "[SHARED_MEMORY]",
    "[SHARED_MEMORY count=…]",
    "[FRIENDS_INFO]",
    "[THIS_MOMENT]",
)
FENCES = (
    "--- BEGIN DOCUMENTATION…",
    "--- END DOCUMENTATION…",
    "--- BEGIN SUMMARY…",
    "--- END SUMMARY…",
)
SUMMARIES = ("[CONTEXT SUMMARY…", "[Previous conversation summary]…", "[Session started:…")
# Elements count anywhere in a line, opened or closed.
ELEMENTS = ("human_input", "current_time", "current_facts", "current_section", "memory_summary")

_LINES = (*HEADINGS, *TAGS, *FENCES, *SUMMARIES)
# The characters that Unicode (NFKC) takes for # [ < > = and, generously, for a hyphen, and others that look like them.
_HASH = "#\uff03\ufe5f\u266f\u22d5\u2317"
_LESS, _MORE = (
    "<\uff1c\ufe64\u2039\u276e\u2329\u3008\u27e8\u02c2\u1438",
    ">\uff1e\ufe65\u203a\u276f\u232a\u3009\u27e9\u02c3\u1433",
)
_BRACKET = "\\[\uff3b\ufe47\u3010\u3014\u301a\u2045\u27e6\u2772\ufe5d"
_DASH = "\\-\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_EQUALS = "=\uff1d\ufe66"
_COLON = ":\uff1a\ufe55\u2236\ua789"
_OPENERS = f"{_HASH}{_BRACKET}{_DASH}"
_WIDE = "".join(each for each in _HASH + _LESS + _BRACKET if each not in "#<\\[")
_RULER = f"[{_DASH}]{{3,}}"
_ESCAPES = r"\\*+"
# Longer than any marker, however it is spaced, so that the two ends of a line are enough to compare. Normalising more
# could take time in the square of its length.
_LONGEST = 96
_TITLE_LINES = 3
"""Lines that the title above an underline may have, or that a heading and a blank line have."""

_BREAK = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
# A line of = or -, or of what is not plain and may hide or look like them.
_UNDERLINE = f"[{_BREAK}]([^\\S{_BREAK}]*+){{escapes}}((?:[=-]|[^!-~{_BREAK}])++)(?=[{_BREAK}]|\\Z)"
# A path after a colon, by which a line is found that names a source.
_PATH = rf"[{_COLON}][^\S{_BREAK}]*+(?=[~/]|[A-Za-z]:[/\\]|\\\\)"
_LONGEST_NAME = 48
"""Characters before that colon, however the word is spaced and hidden."""

# What looks Latin or like punctuation and is not, besides what Unicode itself (NFKC) calls another form of it.
_LOOKALIKES = {
    "Cyrillic": (
        "АВЕКМНОРСТУХІЇЈЅҺԀԚԜѴӀҒԌаекморстухіїјѕһԁԛԝѵӏвнгп",
        "ABEKMHOPCTYXIIJSHDQWVIFGaekmopctyxiijshdqwvlbhrn",
    ),
    "Greek": ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹαεηικνορτυχωγϲϳ", "ABEZHIKMNOPTYXCaenikvoptuxwycj"),
    "Armenian": ("ոսօզհցԼՏՍՕ", "nuoqhgLSUO"),
    "Latin": ("ıȷɑɡɩɪʟɴʀᴀʙᴄᴅᴇꜰɢʜᴊᴋᴍᴏᴘꜱᴛᴜᴠᴡʏᴢ", "ijagiilnrabcdefghjkmopstuvwyz"),
    "Cherokee": ("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏚᏟᏢᏦᏆ", "DRTAJEWMHGZSCPKI"),
    "Lisu": ("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓮꓰꓲꓳꓴꓪꓫꓬ", "BPDTGKJCZFMNLSRVHAEIOUWXY"),
    "signs": ("♯⋕⌗【】〔〕〚〛⁅⁆⟦⟧❲❳‹›❮❯〈〉⟨⟩˂˃ᐸᐳ∶꞉ː⁄∕⧸ˍ", "###[][][][][][]<><><><><><>:::///_"),
}


@cache
def _latin() -> dict[int, str]:
    return {
        ord(each): plain for these, plains in _LOOKALIKES.values() for each, plain in zip(these, plains, strict=True)
    }


@cache
def _candidate() -> re.Pattern[str]:
    # Finds every text with a marker that has an opening character, and few without: one that is wide; or a plain one,
    # then the words of a row, or plain letters up to a character that is not plain. No opening character is run over
    # twice.
    starts = dict.fromkeys(_words(row) for row in _LINES if "…" in row)
    begun = "|".join(starts)
    whole = "|".join(words for words in map(_words, _LINES) if words not in starts)
    elements = "|".join(map(_words, ELEMENTS))
    return re.compile(
        f"[{_WIDE}]|&(?i:lt|#)|<[hH][12]|[<#\\[{_DASH}]"
        "(?:(?<=[#\\[])|(?<=<)[\\s/]*+|(?<=[^\t\n\r -,.-~][^#<\\[]))"
        f"[\t ]*+(?:(?ai:(?:{whole})(?![\t ]*+\\w)|(?:{elements})(?!\\w)|{begun})|[A-Za-z_\t ]*+[^\t\n\r -~])"
    )


def _words(row: str) -> str:
    letters = row.lstrip("#-[ ")
    end = next((at for at, letter in enumerate(letters) if not (letter.isalpha() or letter in "_ ")), len(letters))
    return letters[:end].rstrip().translate({ord(" "): "\\s++", ord("_"): "\\s*+_\\s*+"})


def neutralise(text: str) -> str:
    """`text` with a backslash in each line or element that only Nexus may write; the same object if it has none."""
    return _with_backslashes(text, _points(text))


def escape(text: str, also: re.Pattern[str] | None = None) -> str:
    r"""`text` with one backslash more in each line or element that only Nexus may write, so that none is one.

    Args:
        text: Anything.
        also: Further lines of the format at hand. It is held against the beginning of a line as it is compared: in
            small letters, plain characters, without white space beside punctuation.
    """
    return _with_backslashes(text, _points(text, escaped=True, also=also))


def unescape(text: str, also: re.Pattern[str] | None = None) -> str:
    """What was escaped with the same `also`, as it was."""
    points = [point for point in _points(text, escaped=True, also=also) if text.startswith("\\", point)]
    ends = [*points, len(text)]
    return "".join(text[start:end] for start, end in zip([0, *(point + 1 for point in points)], ends, strict=True))


def forged(text: str) -> list[tuple[int, str]]:
    """The lines that `neutralise` would change, each with its number, from 1."""
    lines: dict[int, str] = {}
    number, seen = 1, 0
    for point in _points(text):
        number += text.count("\n", seen, point)
        seen = point
        if number not in lines:
            start, end = text.rfind("\n", 0, point) + 1, text.find("\n", point)
            lines[number] = text[start : end if end >= 0 else None].rstrip("\r")
    return list(lines.items())


def _with_backslashes(text: str, points: list[int]) -> str:
    return "\\".join(text[start:end] for start, end in pairwise([0, *points, len(text)])) if points else text


def _points(text: str, *, escaped: bool = False, also: re.Pattern[str] | None = None) -> list[int]:
    # Where a backslash goes; where the first one is, of markers that have some, if those are wanted too.
    points = {*_underline_points(text, escaped), *_source_points(text, escaped)}
    if also is not None or _candidate().search(text.replace("\\", "") if escaped else text) is not None:
        points.update(_line_points(text, escaped, also), _element_points(text, escaped))
    return sorted(points)


def _line_points(text: str, escaped: bool, also: re.Pattern[str] | None) -> Iterator[int]:
    # Compiled (and kept) by `re` on demand: few texts get here. What precedes a marker may be invisible; a hyphen
    # before a blank is a bullet.
    opening = re.compile(f"([^!-~{_OPENERS}]*+){_ESCAPES if escaped else ''}[{_OPENERS}](?<!-(?=[\t -,.-~]))")
    offset = 0
    for line in text.splitlines(keepends=True):
        if (found := opening.match(line)) and _is_marker(found[1] + line[found.end() - 1 :], also):
            yield offset + found.end(1)
        offset += len(line)


def _underline_points(text: str, escaped: bool) -> Iterator[int]:
    # A line of nothing but = or - makes a heading of the lines above.
    for found in re.finditer(_UNDERLINE.format(escapes=_ESCAPES if escaped else ""), text):
        sign = bare(found[2]).strip()
        if re.fullmatch(f"[{_EQUALS}]+|[{_DASH}]+", sign):
            level = "#" if sign[0] in _EQUALS else "##"
            if _is_title(_lines_above(text, found.start() + 1), level):
                yield found.end(1)


def _is_title(above: Sequence[str], level: str) -> bool:
    """True if the last of these lines are the title of one of our headings of that level."""
    title = ""
    for line in reversed(above):
        if not (rest := _squeeze(line)):
            return False
        title = f"{rest} {title}".strip()
        if rest.isascii() and rest.partition(" ")[0].casefold() not in _first_words():
            continue
        if _is_marker(f"{level} {title}", None):
            return True
    return False


def _source_points(text: str, escaped: bool) -> Iterator[int]:
    # `Source: /path` below a heading of any kind, at most one blank line after it.
    for found in re.finditer(_PATH, text):
        end = found.start()
        if "!" <= text[end - 1 : end] <= "~" and text[end - 1] not in "eE":  # as in https://
            continue
        line = text[max(end - _LONGEST_NAME, 0) : end + 1].splitlines()[-1][:-1]
        name = line.lstrip()
        if _fold(_squeeze(name.lstrip("\\") if escaped else name)) != "source":
            continue
        if _is_heading(_lines_above(text, end - len(line)), escaped=escaped):
            yield end - len(name)


def _is_heading(above: Sequence[str], *, escaped: bool) -> bool:
    lines = list(map(_squeeze, above))
    lines = lines[:-1] if lines and not lines[-1] else lines
    heading = lines[-1] if lines else ""
    heading = heading.lstrip("\\").replace("<\\", "<") if escaped else heading
    if re.match(r"#|<(?:h[1-6]|b|strong)\b|(\*\*|__)[^*_].*\1:?$", _fold(heading[: 2 * _LONGEST])):
        return True
    is_underline = re.fullmatch(f"[{_EQUALS}]+|[{_DASH}]+", heading) is not None
    return is_underline and len(lines) > 1 and bool(lines[-2])


def _lines_above(text: str, at: int) -> list[str]:
    """Return up to three lines before a position, without what is too long to be a heading."""
    lines = text[max(at - _LONGEST, 0) : at].splitlines()
    if len(lines) <= _TITLE_LINES and at > _LONGEST:  # the first of them may be cut off
        lines = text[max(at - 8 * _LONGEST, 0) : at].splitlines()
    return lines[-_TITLE_LINES:]


def _element_points(text: str, escaped: bool) -> Iterator[int]:
    backslashes = _ESCAPES if escaped else ""
    # A tag ends in a bracket; where another one begins first, it is none, unless that is in the value of an attribute.
    sign = f"[{_LESS}]({backslashes})([^{_LESS}{_MORE}]*+)(?=[{_MORE}]|(?<=[\"'])[{_LESS}])"
    written = rf"(?i:&(?:lt|#0*60|#x0*3c)(?:;|\b))({backslashes})([^&{_LESS}{_MORE}]*+)(?:&|[{_MORE}])"
    for found in re.finditer(sign, text):
        name = found[2][: 4 * _LONGEST]
        if _is_element(name) or _is_html_heading(name, text, found.end() + 1):
            yield found.start(1)
    if "&" in text:
        yield from (found.start(1) for found in re.finditer(written, text) if _is_element(found[2][: 4 * _LONGEST]))


def _is_element(content: str) -> bool:
    """True for what is between the brackets of one of our elements, with or without attributes."""
    if "&" in content:
        from html import unescape as read_entities  # noqa: PLC0415 - few names are written with them

        content = read_entities(content)
    plain = " ".join(bare(content).split())
    folded = _fold(plain[:_LONGEST]).removeprefix("/")
    if folded in _elements():
        return True
    found = re.match("[a-z]+_[a-z]+", folded)
    # A blank before a name is one of a comparison, as in a < b, unless nothing else is there.
    return (
        found is not None
        and found[0] in _elements()
        and not re.match(r"\w", folded[found.end() :])
        and (not content[:1].isspace())
    )


def _is_html_heading(content: str, text: str, end: int) -> bool:
    """True for the opening tag of an HTML heading with one of our titles; `end` is where its title begins."""
    found = re.match(r"[hH]([12])(?:\s|$)", bare(content))
    if found is None:
        return False
    title = re.split(f"[{_LESS}]", text[end : end + 2 * _LONGEST], maxsplit=1)[0].strip()
    # One that nothing closes may end with its line.
    return any(_is_marker(f"{'#' * int(found[1])} {_squeeze(each)}", None) for each in (title, *title.splitlines()[:1]))


def _is_marker(line: str, also: re.Pattern[str] | None) -> bool:
    plain = re.sub(_RULER, "---", " ".join(bare(line).split()))
    if plain[0] in _HASH:
        plain = plain.rstrip(f"{_HASH} ")  # Markdown allows a heading to be closed: ## Title ##
    head, tail = plain[:_LONGEST], plain[-_LONGEST:]
    folded = _fold(head)
    if also is not None and also.match(folded):
        return True
    whole, open_ended = _rows()
    return folded in whole or any(folded.startswith(start) and _fold(tail).endswith(end) for start, end in open_ended)


def _squeeze(line: str) -> str:
    """Return a line without what hides, and with single blanks."""
    return " ".join(bare(line).split())


@cache
def _first_words() -> frozenset[str]:
    return frozenset(row.lstrip("# ").partition(" ")[0].casefold() for row in HEADINGS)


@cache
def _elements() -> frozenset[str]:
    return frozenset(map(_fold, ELEMENTS))


@cache
def _rows() -> tuple[frozenset[str], tuple[tuple[str, str], ...]]:
    whole = frozenset(_fold(row) for row in _LINES if "…" not in row)
    parts = (row.partition("…") for row in _LINES if "…" in row)
    return whole, tuple((_fold(start), _fold(end)) for start, _, end in parts)


def _fold(text: str) -> str:
    folded = text
    if not text.isascii():
        import unicodedata  # noqa: PLC0415 - a plain text does not need its tables

        folded = unicodedata.normalize("NFKC", text).translate(_latin())
    # White space beside punctuation says nothing.
    return re.sub(r" (?=[^\w -]|_|---)|(?:(?<=[^\w -])|(?<=_)|(?<=---)) ", "", folded.casefold())
