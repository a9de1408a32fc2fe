"""The pages of the documentation, and what is in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from tests.conftest import ROOT

DOCS = sorted(ROOT.glob("docs/**/*.md"))
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *DOCS,
    *sorted(ROOT.glob("plugins/**/README.md")),
    *sorted(ROOT.glob("benchmarks/*.md")),
    *sorted(ROOT.glob("examples/*-plugin/*.md")),
]


class Block(NamedTuple):
    """Code on a page: with a fence, or indented and without a language."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """The code of a page."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable("inline")  # which takes as long as everything else
    tokens = parser.parse(page.read_text(encoding="utf-8"))
    return tuple(
        Block(page, token.map[0] + 1, token.info.strip(), token.content)
        for token in tokens
        if token.type in {"fence", "code_block"} and token.map is not None
    )


@cache
def spans(page: Path) -> tuple[str, ...]:
    """The code between the words of a page."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    inner = (child for token in tokens for child in token.children or ())
    return tuple(child.content for child in inner if child.type == "code_inline")
