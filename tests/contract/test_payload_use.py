"""Metadata of steps and sessions is read through payloads; only the codec looks into the stored JSON."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

CODEC = {"nexus_core/types/payloads.py", "nexus_core/ledger/codec.py"}
OTHER_DATA = {"row", "section"}
"""Variables whose `data` is not the JSON of a step or session; that of a row is text."""
ATTRIBUTE = re.compile(r"\.\s*data\b")
LOOKUPS = {"get", "items", "keys", "pop", "values"}


def lookups(tree: ast.AST) -> Iterator[int]:
    """The lines in which something is looked up in an attribute `data`."""
    for node in ast.walk(tree):
        looked_in: list[ast.expr] = []
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in LOOKUPS):
            looked_in = [node.value]
        elif isinstance(node, ast.Compare):
            pairs = zip(node.ops, node.comparators, strict=True)
            looked_in = [right for operator, right in pairs if isinstance(operator, ast.In | ast.NotIn)]
        elif isinstance(node, ast.Dict):
            looked_in = [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
        found = [each for each in looked_in if isinstance(each, ast.Attribute) and each.attr == "data"]
        yield from (each.lineno for each in found if getattr(each.value, "id", "") not in OTHER_DATA)


def test_no_module_but_the_codec_looks_into_stored_metadata() -> None:
    files = [path for folder in ("nexus_core", "plugins") for path in (ROOT / folder).rglob("*.py")]
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}

    found = [
        f"{name}:{line}"
        for name, source in sources.items()
        if name not in CODEC and ATTRIBUTE.search(source)  # most files have none, and parsing takes long
        for line in lookups(ast.parse(source))
    ]

    assert found == []


@pytest.mark.parametrize(
    "code",
    ['step.data["id"]', 'tip.data.get("id")', '"id" in step.data', "{**record.data}", "self.record.data.items()"],
)
def test_a_lookup_is_found(code: str) -> None:
    assert list(lookups(ast.parse(code))) == [1]
