"""Every code that the doctor may tell is in the reference."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8").partition("## Findings of `nexus doctor`")[2]
VERIFY = ROOT / "plugins/nexus_plugins/ledger/_rows.py"
"""What `nexus ledger verify` finds is on the page of the ledger."""
SOURCES = sorted({*ROOT.glob("nexus_core/layers/*.py"), *ROOT.glob("plugins/nexus_plugins/*/*.py")} - {VERIFY})
CODE = re.compile("[a-z]+(?:-[a-z]+)+")


def codes_in(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not re.search(r"\b(?:Finding|_finding|_find)\(", text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Finding", "_finding", "self._find"}:
            inner = (each for argument in node.args for each in ast.walk(argument) if isinstance(each, ast.Constant))
            yield from (each.value for each in inner if isinstance(each.value, str) and CODE.fullmatch(each.value))


CODES = sorted({code for path in SOURCES for code in codes_in(path)})


@pytest.mark.parametrize("code", CODES)
def test_a_code_of_the_doctor_is_explained(code: str) -> None:
    assert f"`{code}`" in PAGE


def test_codes_are_found_in_the_sources() -> None:
    assert len(CODES) > 15
