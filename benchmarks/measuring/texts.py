"""Texts that are counted, and where that is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measuring.processes import clean_environment
from benchmarks.measuring.venvs import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def environment_for(tables: Path, scratch: Path) -> dict[str, str]:
    """The environment of everything that is measured."""
    places = {"NEXUS_HOME": scratch / "home", "XDG_CACHE_HOME": scratch / "cache", "TIKTOKEN_CACHE_DIR": tables}
    return clean_environment() | {name: str(place) for name, place in places.items()}


def read_text() -> str:
    """A megabyte of code, prose and other scripts."""
    kinds = ("nexus_core/**/*.py", "docs/**/*.md", "tests/tokens/samples/*.txt")
    found = "".join(path.read_text() for kind in kinds for path in sorted(ROOT.glob(kind)))
    return (found * (1 + 1_000_000 // len(found)))[:1_000_000]


def read_messages() -> list[str]:
    """Two thousand texts as long as messages are."""
    text = read_text()
    return [text[start : start + 100 + start % 700] for start in range(0, 1_000_000, 500)]
