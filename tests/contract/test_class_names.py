"""A class name means one thing in the whole repository."""

from __future__ import annotations

import ast
import re
from collections import Counter

from tests.conftest import ROOT

CLASS_LINE = re.compile(r"^[ \t]*class (\w+)", re.MULTILINE)
SOURCES = ("nexus_core", "plugins/nexus_plugins")
DEFINED_TWICE = {
    "TiktokenCounter": 2,  # a name of the NEXUS3 interface, and the plugin's
}
"""Names that are still defined more than once, and how often. Nothing may be added here; what gets a name of its own
is taken out."""


def test_no_class_name_is_defined_twice() -> None:
    texts = [path.read_text(encoding="utf-8") for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    lines = Counter(name for text in texts for name in CLASS_LINE.findall(text))
    # Such a line may be in a text. Only files with a repeated name are parsed, which takes long.
    repeated = [text for text in texts if any(lines[name] > 1 for name in CLASS_LINE.findall(text))]
    found = Counter(
        node.name for text in repeated for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)
    )
    twice = {name: number for name, number in found.items() if number > 1}

    new = {name: number for name, number in twice.items() if number > DEFINED_TWICE.get(name, 1)}
    settled = {name: number for name, number in DEFINED_TWICE.items() if found[name] < number}

    assert new == {}, "a class with a name of its own is found by searching for it"
    assert settled == {}, "these are defined less often now: lower the number in DEFINED_TWICE, or remove the name"
