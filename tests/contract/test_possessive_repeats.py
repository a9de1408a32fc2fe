"""Regular expressions match the same in every release of Python that Nexus supports."""

from __future__ import annotations

import re

from tests.conftest import ROOT

SOURCES = ("nexus_core", "plugins/nexus_plugins")
# A repeat of a group, or of a part that an f-string inserts: `(?:ab)*+`, `(?:ab){2,}+`, `{_GAP}++`.
GROUP_REPEAT = re.compile(r"(?<!\\)\)(?:[*+?]|\{\{?\d*,?\d*\}?\})\+|(?<!\{)\{\w+\}[*+?]\+")


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 does not go back to the start of the last, failed repetition (CPython gh-106052)."""
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if GROUP_REPEAT.search(line)
    ]

    assert found == [], "write (?>(?:…)*) for (?:…)*+; a possessive repeat of one character or set is right everywhere"
