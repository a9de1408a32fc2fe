"""Sessions as self-contained HTML pages, without network access.

Texts are escaped where they are written. Markdown is rendered without HTML; a link has a known scheme, and an image is
data of a known type. The Content-Security-Policy names the digests of the page's own style and script, so that a
browser runs and loads nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core.text.safety import visible
from nexus_core.transfer.documents import (
    MAX_MARKDOWN_CHARACTERS,
    MAX_MARKDOWN_LEVELS,
    find_data_image,
    format_usage,
    get_safe_link_scheme,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

    from nexus_core.transfer.documents import DocumentBlock, DocumentMessage, DocumentTurn, SessionDocument

_ASSETS = Path(__file__).parent
_ROLE_NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_FOLDED_ROLES = ("system",)
"""Roles whose texts are long and the same in every session."""


def write_html(document: SessionDocument) -> str:
    """Return a document as a page for a browser."""
    style, script = (_read_asset(name) for name in ("page.css", "page.js"))
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_compute_digest(style)}'",
            f"script-src '{_compute_digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="generator" content="nexus session export">',
        f"<title>{escape(document.title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        *_write_header(document),
        '<main id="turns">',
    ]
    for index, turn in enumerate(document.turns):
        lines += _write_turn(turn, index)
    lines += ["</main>", f"<script>{script}</script>", "</body>", "</html>"]
    return "\n".join(lines) + "\n"


def _read_asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _compute_digest(text: str) -> str:
    """Return the digest of an inline asset for Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _write_header(document: SessionDocument) -> Iterator[str]:
    yield "<header>"
    yield f"<h1>{escape(document.title)}</h1>"
    yield '<ul class="facts">'
    yield from (f"<li>{escape(fact)}</li>" for fact in document.facts if fact)
    yield "</ul>"
    titled = [(index, turn) for index, turn in enumerate(document.turns) if turn.title]
    if len(titled) > 1:
        yield '<details class="contents"><summary>Contents</summary>\n<ol>'
        for index, turn in titled:
            excerpt = f' <span class="excerpt">{escape(turn.excerpt)}</span>' if turn.excerpt else ""
            facts = f' <span class="numbers">{escape(_join_facts(turn))}</span>'
            yield f'<li><a href="#turn-{index}">{escape(turn.title)}</a>{excerpt}{facts}</li>'
        yield "</ol>\n</details>"
    yield "</header>"
    # Without a script, the search of the browser finds everything, folded or not.
    yield '<form id="search" role="search" hidden>'
    yield '<input type="search" aria-label="Search this session" placeholder="Search this session" autocomplete="off">'
    yield '<output aria-live="polite"></output>'
    yield '<button type="button">Unfold all</button>'
    yield "</form>"


def _join_facts(turn: DocumentTurn) -> str:
    return format_usage(turn.usage, turn.tokens, turn.cost)


def _write_turn(turn: DocumentTurn, index: int) -> Iterator[str]:
    yield f'<section class="turn" id="turn-{index}">'
    if turn.title:
        state = ' <span class="state">open</span>' if turn.is_open else ""
        yield f'<h2><a href="#turn-{index}">{escape(turn.title)}</a>{state} <time>{escape(turn.time)}</time>'
        yield f'<span class="numbers">{escape(_join_facts(turn))}</span></h2>'
    for message in turn.messages:
        yield from _write_message(message)
    yield "</section>"


def _write_message(message: DocumentMessage) -> Iterator[str]:
    if message.role == "note":
        for block in message.blocks:
            yield _write_note(block)
        return
    role = message.role if message.role in _ROLE_NAMES else "tool"
    yield f'<article class="{role}">'
    facts = [message.model, format_usage(message.usage, 0, message.cost)]
    shown = "".join(f' <span class="numbers">{escape(fact)}</span>' for fact in facts if fact)
    yield f"<h3>{escape(_ROLE_NAMES[role])}{shown}</h3>"
    if role in _FOLDED_ROLES:
        yield "<details><summary>Instructions</summary>"
    for block in message.blocks:
        yield _write_block(block, breaks=role == "user")
    if role in _FOLDED_ROLES:
        yield "</details>"
    yield "</article>"


def _write_block(block: DocumentBlock, *, breaks: bool = False) -> str:
    if block.kind == "text":
        return f'<div class="text" dir="auto">{render_markdown(block.text, breaks=breaks)}</div>'
    if block.kind == "reasoning":
        text = f'<div class="text" dir="auto">{render_markdown(block.text)}</div>'
        return f'<details class="reasoning"><summary>{escape(block.title)}</summary>{text}</details>'
    if block.kind == "tool":
        return _write_call(block)
    if block.kind == "image":
        return _write_image(block.title, block.image)
    if block.kind == "note":
        return _write_note(block)
    title = f'<p class="label">{escape(block.title)}</p>' if block.title else ""
    return f"{title}{_write_code(block.text)}"


def _write_call(block: DocumentBlock) -> str:
    excerpt = f' <code dir="auto">{escape(block.text)}</code>' if block.text else ""
    state = ' <span class="state">error</span>' if block.is_error else ""
    parts = [f"<summary><b>{escape(block.title)}</b>{state}{excerpt}</summary>"]
    for name, value in block.arguments.items():
        parts += [
            f'<p class="label">{escape(label)}</p>{_write_code(text)}' for label, text in _list_texts(name, value)
        ]
    if block.results:
        parts.append('<p class="label">result</p>')
    parts += [_write_block(result) for result in block.results]
    return f'<details class="tool">{"".join(parts)}</details>'


def _list_texts(name: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON has many types
    """Yield an argument with its name, multi-line texts separately."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
    if isinstance(value, str) or "\\n" not in text:
        yield name, text
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value, 1)
    for key, each in parts:
        yield from _list_texts(f"{name} {key}", each)


def _write_note(block: DocumentBlock) -> str:
    if not block.text:
        return f'<p class="note">{escape(block.title)}</p>'
    text = f'<div class="text" dir="auto">{render_markdown(block.text)}</div>'
    return f'<details class="note"><summary>{escape(block.title)}</summary>{text}</details>'


def _write_image(title: str, url: str) -> str:
    caption = f"<figcaption>{escape(title)}</figcaption>"
    image = f'<img src="{escape(url)}" alt="{escape(title)}">' if url else ""
    return f"<figure>{image}{caption}</figure>"


def _write_code(text: str) -> str:
    # A parser drops the first newline of a <pre>, so that a text that begins with one needs two.
    lead = "\n" if text.startswith("\n") else ""
    return f'<pre dir="auto">{lead}{escape(text)}</pre>'


# ---- Markdown -----------------------------------------------------------------------------------------------------


def render_markdown(text: str, *, breaks: bool = False) -> str:
    """Return Markdown as HTML, or escaped text if the parser would lose parts.

    Args:
        text: The text, in which HTML has no meaning.
        breaks: True to keep single line ends, as people type them.
    """
    plain = f'<p class="plain">{escape(text)}</p>'
    if len(text) > MAX_MARKDOWN_CHARACTERS:
        return plain
    parser = _build_parser(breaks)
    try:
        tokens = parser.parse(text)
        if any(token.level >= MAX_MARKDOWN_LEVELS - 1 for token in tokens):
            return plain
        rendered = str(parser.renderer.render(tokens, parser.options, {}))
    except RecursionError:
        return plain
    return visible(rendered)  # entities may stand for hidden characters


@cache
def _build_parser(breaks: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    options = {"html": False, "linkify": False, "breaks": breaks, "maxNesting": MAX_MARKDOWN_LEVELS, "xhtmlOut": False}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.disable("reference")  # a definition would not be shown
    parser.validateLink = _is_link  # type: ignore[method-assign] # the documented way to restrict links
    parser.add_render_rule("link_open", _open_link)
    parser.add_render_rule("link_close", _close_link)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("fence", _render_fence)
    for cell in ("th_open", "td_open"):
        parser.add_render_rule(cell, _open_cell)
    for level in ("heading_open", "heading_close"):
        parser.add_render_rule(level, _render_heading)
    return parser


def _is_link(url: str) -> bool:
    return bool(find_data_image(url)) if url.startswith("data:") else get_safe_link_scheme(url) is not None


def _open_link(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, environment: dict[str, Any]
) -> str:
    token = tokens[index]
    url = str(token.attrGet("href") or "")
    # A path is of the machine of the session; the page has no such file beside it.
    is_link = bool(get_safe_link_scheme(url))
    environment.setdefault("links", []).append(is_link)
    if not is_link:
        return f'<span class="path" title="{escape(url)}">'
    title = f' title="{escape(str(token.attrGet("title")))}"' if token.attrGet("title") else ""
    return f'<a href="{escape(url)}"{title} rel="noopener noreferrer nofollow">'


def _close_link(
    _renderer: RendererHTML, _tokens: Sequence[Token], _index: int, _options: object, environment: dict[str, Any]
) -> str:
    return "</a>" if environment["links"].pop() else "</span>"


def _render_image(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _environment: dict[str, Any]
) -> str:
    token = tokens[index]
    url, title = str(token.attrGet("src") or ""), token.content
    if image := find_data_image(url):
        return f'<img src="{escape(image)}" alt="{escape(title)}">'
    return f'<span class="path" title="{escape(url)}">[image: {escape(title or url)}]</span>'  # would be a request


def _render_fence(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _environment: dict[str, Any]
) -> str:
    info = tokens[index].info.strip()  # the language, or any other text
    label = f'<p class="label">{escape(info)}</p>' if info else ""
    return f"{label}{_write_code(tokens[index].content)}\n"


def _open_cell(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _environment: dict[str, Any]
) -> str:
    token = tokens[index]
    side = str(token.attrGet("style") or "").removeprefix("text-align:")  # the policy allows no style attribute
    return f'<{token.tag} class="{side}">' if side in ("left", "center", "right") else f"<{token.tag}>"


def _render_heading(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _environment: dict[str, Any]
) -> str:
    token = tokens[index]
    level = min(int(token.tag[1]) + 3, 6)  # below the headings of the page
    return f"<h{level}>" if token.nesting > 0 else f"</h{level}>\n"
