"""Markdown formatted for a terminal, with nothing of it hidden.

Headings, lists, tables, quotes, emphasis and code get their usual form. A reader of the formatted text must not miss
what a model reads in the source, so that everything whose form would hide a part of it is shown as it is written: the
targets and titles of links and images, reference definitions, HTML with its comments, and the language of a code
block. Entities such as `&#27;` are not decoded, because they could become control characters.
"""

from __future__ import annotations

import re
from collections import Counter
from io import StringIO
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from rich.console import Console as RichConsole
from rich.markdown import CodeBlock, Heading, Markdown
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderResult

_HIDING_RULES = ("link", "image", "autolink", "html_inline", "entity", "html_block", "reference")
"""Rules of the parser whose results show less than what is written."""
_MAX_CHARACTERS = 20_000
"""Formatting a longer text may take seconds."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_CODE_THEME = "ansi_dark"
"""Colors of the terminal's own palette, which suit light and dark backgrounds."""
_THEME = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.code": "cyan",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.block_quote": "dim",
    }
)


def format_markdown(text: str, width: int, *, color: bool) -> list[str]:
    """Return Markdown as lines for a terminal.

    It is left as it is written if it is very long, or if some of its letters would not be shown: quotes in quotes are
    not followed to any depth, and columns of a table may be too narrow.

    Args:
        text: The Markdown, without control characters.
        width: Cells of a line.
        color: True to use styles; without, only the layout is that of Markdown.
    """
    if len(text) > _MAX_CHARACTERS:
        return text.split("\n")
    try:
        shown = _render_markdown(text, width, color=color)
    except RecursionError:
        return text.split("\n")
    is_complete = not _count_letters(text) - _count_letters(_STYLE.sub("", shown))
    return [line.rstrip() for line in shown.rstrip("\n").split("\n")] if is_complete else text.split("\n")


def _count_letters(text: str) -> Counter[str]:
    return Counter(filter(str.isalpha, text))


def _render_markdown(text: str, width: int, *, color: bool) -> str:
    console = RichConsole(
        file=StringIO(),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        width=width,
        theme=_THEME,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        console.print(_VisibleMarkdown(text), end="")
    return captured.get()


class _LeftHeading(Heading):
    """A heading on the left, also the first one."""

    LEVEL_ALIGN = {}  # noqa: RUF012 - a table, never changed


class _VisibleCodeBlock(CodeBlock):
    """A block of code between its fences, with everything that is written behind the first one."""

    def __init__(self, lexer_name: str, theme: str, info: str) -> None:
        super().__init__(lexer_name, theme)
        self.info = info

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _VisibleCodeBlock:
        """Return the element of a token."""
        return cls(token.info.partition(" ")[0] or "text", markdown.code_theme, token.info)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.info:
            yield Text(f"```{self.info}", style="dim")
        yield Syntax(
            str(self.text).rstrip("\n"),
            self.lexer_name,
            theme=self.theme,
            background_color="default",
            word_wrap=True,
            padding=(0, 0, 0, 2),
        )
        if self.info:
            yield Text("```", style="dim")


class _VisibleMarkdown(Markdown):
    """Markdown that is parsed so that nothing of it is hidden."""

    elements = {  # noqa: RUF012 - a table, never changed
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _VisibleCodeBlock,
        "code_block": _VisibleCodeBlock,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme=_CODE_THEME)
        parser = MarkdownIt().enable(["strikethrough", "table"]).disable(_HIDING_RULES)
        self.parsed = parser.parse(text)
        _keep_line_breaks(self.parsed)


def _keep_line_breaks(tokens: Iterable[Token]) -> None:
    # People and models write messages in lines, and one line is not a continuation of the one before.
    for token in tokens:
        if token.type == "softbreak":
            token.type = "hardbreak"
        _keep_line_breaks(token.children or ())
