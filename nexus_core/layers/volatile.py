"""What changes from day to day, or each time it is asked for, and so keeps a prompt from being cached."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.values.section import Section

# None of these runs over more than a few dozen characters twice: a line may be a megabyte long.
_FENCE = re.compile(r"^[ \t>*+\d.)-]*+(`{3,}+(?=[^`]*+$)|~{3,}+)")
_CODE = re.compile(r"(?<!`)`++[^`]*+`++")
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|ember|tember|ober)?\.?"
_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? {_MONTH},? |{_MONTH} (?:\d{{1,2}}(?:st|nd|rd|th)?,? )?)\d{{4}}"
_DATE = rf"(?:\d{{4}}[-/]\d\d[-/]\d\d|\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}|{_DAY})(?!\d|-\w)"
_IS = r"(?: is)?[ \t*_:=|\"'-]{1,8}(?:(?:on|at|the) )?"
_CHANGED = "(?:updated|modified|changed|edited|generated|refreshed|synced|checked|verified|reviewed)"
_DATED = re.compile(
    rf"(?<![A-Za-z0-9-])(?:(?:today(?:['\u2019]?s date)?|current[ _-](?:date(?:[ _-]?(?:and )?time)?|time|day)){_IS}"
    rf"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|{_DATE}|\d{{1,2}}:\d\d)"
    rf"|(?:last[ _-]?{_CHANGED}{_IS}|(?:generated|refreshed|synced) (?:on|at)[ *_:]{{1,4}}|as of ){_DATE})",
    re.IGNORECASE,
)
_COUNTER = re.compile(
    r"(?<![\w-])(?:(?:run|build|iteration|session) (?:no\. |number )?#\d{2,12}(?!\w)"
    # Without a number sign it counts only where the sentence pauses: "build 4711.", not "build 100 widgets".
    r"|build(?: number)?:? (?!(?:19|20)\d\d\b)\d{3,12}(?=\s*$|[)\],;:]|\.(?!\d)))",
    re.IGNORECASE,
)
_REQUIREMENT = re.compile(r"windows|macos|require|minimum|at least|or (?:later|newer|higher|above)", re.IGNORECASE)
_TIMESTAMP = re.compile(r"(?<![\w\"'=/.:+-])\d{4}-\d\d-\d\d(?:T|[ ,]{1,2})(?!00:00)[012]\d:[0-5]\d(?!\d)")
_FIXED = re.compile(
    r"^[ \t]*+(?:[-*+#|>]|\d{1,4}[.)])[-*+#|>_~\[( \t]*+\d{4}-\d\d-\d\d"  # an entry of a list of changes
    r"|\b(?:e\.g|example|such as|formats?\b|iso[ -]?8601|rfc[ -]?3339)",
    re.IGNORECASE,
)


def find_volatile_sections(first: Iterable[Section], second: Iterable[Section]) -> list[Finding]:
    """The sections of plugins that keep a prompt from being cached.

    Args:
        first: What plugins brought when they were asked.
        second: What they brought when they were asked once more.
    """
    before, after = ({_known_by(section): section.text for section in each} for each in (first, second))
    found = []
    for plugin, name in dict.fromkeys([*before, *after]):
        was, is_now = before.get((plugin, name)), after.get((plugin, name))
        dated = next(filter(None, (find_volatile(line) for _, line in prose(is_now or ""))), None)
        if was != is_now:
            message = f"plugin {plugin!r} brings another section {name!r} each time it is asked"
        elif dated is not None:
            message = f"plugin {plugin!r} has {dated[0]!r} in its section {name!r}, which changes from day to day"
        else:
            continue
        found.append(Finding("volatile-section", f"{message}, and each change invalidates the prompt cache"))
    return found


def prose(content: str) -> Iterator[tuple[int, str]]:
    """The lines that are not code, numbered, with code in them blanked: times in code are examples."""
    fence = ""
    for number, line in enumerate(content.split("\n"), start=1):
        marker = _FENCE.match(line)
        if fence and marker and marker[1].startswith(fence) and not line[marker.end() :].strip():
            fence = ""
        elif marker and not fence:
            fence = marker[1]
        elif line and not fence:
            yield number, _CODE.sub(lambda code: " " * len(code[0]), line)


def find_volatile(line: str) -> re.Match[str] | None:
    """The first date, counter or time in a line that will be another one soon; None where there is none."""
    if found := _DATED.search(line):
        return found
    if (found := _COUNTER.search(line)) and not _REQUIREMENT.search(line):
        return found
    return None if _FIXED.search(line) else _TIMESTAMP.search(line)


def _known_by(section: Section) -> tuple[str, str]:
    return section.source.plugin if section.source else "", section.id
