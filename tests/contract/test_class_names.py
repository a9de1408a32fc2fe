"""A class name means one thing in the whole repository."""

from __future__ import annotations

import ast
from collections import Counter

from tests.conftest import ROOT

SOURCES = ("nexus_core", "plugins/nexus_plugins")
DEFINED_TWICE = {
    "TiktokenCounter": 2,  # a name of the NEXUS3 interface, and the plugin's
}
"""Names that are still defined more than once, and how often. Nothing may be added here; what gets a name of its own
is taken out."""


def test_no_class_name_is_defined_twice() -> None:
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    found = Counter(
        node.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    twice = {name: number for name, number in found.items() if number > 1}

    new = {name: number for name, number in twice.items() if number > DEFINED_TWICE.get(name, 1)}
    settled = {name: number for name, number in DEFINED_TWICE.items() if found[name] < number}

    assert new == {}, "a class with a name of its own is found by searching for it"
    assert settled == {}, "these are defined less often now: lower the number in DEFINED_TWICE, or remove the name"
