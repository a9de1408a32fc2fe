"""Sessions as documents for people, and their form in Markdown.

`build_document` turns a session into turns, messages and blocks, whose texts are redacted and have no hidden
characters. `write_markdown` and `html_page.write_html` write the same document. Same session, same bytes: all times are
in UTC, and none of them is the time of the export.

In Markdown, messages are quotes, so that none can forge a heading of the document. HTML, images, link definitions and
entities in them are escaped. The result is parsed again: a message that still has any of these is shown as code.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote_to_bytes

from nexus_core.text.console import format_count, format_share
from nexus_core.text.safety import shorten, visible, visible_line
from nexus_core.text.secrets import redact, redact_json
from nexus_core.thread.state import (
    MARKER_KINDS,
    add_usages,
    compute_step_cost,
    is_session_start_step,
    is_unanswered_input,
    opens_turn,
    read_newest_turns,
)
from nexus_core.tokens.prices import add_costs, describe_prices
from nexus_core.types.messages import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult, Usage
from nexus_core.types.payloads import CompactionPayload, ReplyPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

    from nexus_core.thread.state import Turn
    from nexus_core.tokens.prices import Cost, PriceList
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.messages import JSON, Message, Part

BlockKind = Literal["text", "reasoning", "tool", "image", "code", "note"]

MAX_MARKDOWN_CHARACTERS = 50_000
"""Longer texts are shown as they are: some Markdown takes quadratic time to parse."""
MAX_MARKDOWN_LEVELS = 40
"""Markdown that is nested deeper is shown as it is: the parser leaves out what is inside."""
LINK_SCHEMES = ("http", "https", "mailto")
"""Schemes of links that can be clicked."""
_IMAGE_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_MAX_EXCERPT_CHARACTERS = 100
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentBlock:
    """A part of a message.

    Attributes:
        kind: `text` and `reasoning` are Markdown; `code` is shown as it is; `tool` is a tool call with its results;
            `note` is a remark of Nexus.
        title: The name of the tool, the description of an image, or the heading of code and notes.
        text: The text, or the first argument of a tool call.
        arguments: The arguments of a tool call.
        results: The results of a tool call.
        image: An image as a `data:` URL of a known type; "" if it is not in the session.
        is_error: True for a tool call that failed.
    """

    kind: BlockKind
    title: str = ""
    text: str = ""
    arguments: JSON = field(default_factory=dict)
    results: tuple[DocumentBlock, ...] = ()
    image: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMessage:
    """A message of a document.

    Attributes:
        role: The role; `note` for remarks about the session.
        blocks: Its parts.
        model: The model that replied; "" if it is that of the reply before, in the same turn.
        usage: The token usage of the reply; None if unknown.
        cost: Its cost; None if it is unknown whether it cost anything.
    """

    role: str
    blocks: tuple[DocumentBlock, ...]
    model: str = ""
    usage: Usage | None = None
    cost: Cost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentTurn:
    """A turn of a document.

    Attributes:
        title: Its heading; "" for a remark between turns.
        excerpt: The beginning of the user message.
        time: When it began, in UTC.
        messages: Its messages.
        usage: Its token usage; None if no provider reported any.
        cost: Its cost; None if no provider reported any usage.
        tokens: Tokens of its messages by our count; those of a user message are counted as it was rendered and sent.
        is_open: True if it has not ended.
    """

    title: str
    excerpt: str
    time: str
    messages: tuple[DocumentMessage, ...]
    usage: Usage | None
    cost: Cost | None
    tokens: int
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDocument:
    """A session for people to read.

    Attributes:
        title: The session's name.
        facts: Sentences about the session.
        turns: Its turns, oldest first.
    """

    title: str
    facts: tuple[str, ...]
    turns: tuple[DocumentTurn, ...]


# ---- building -----------------------------------------------------------------------------------------------------


def build_document(
    ledger: Ledger, record: SessionRecord, prices: PriceList | None = None, *, with_secrets: bool = False
) -> SessionDocument:
    """Return a session as a document, compacted turns included.

    Args:
        ledger: The ledger.
        record: The session.
        prices: The prices of models; None for a document without costs.
        with_secrets: True to keep keys, tokens and passwords.

    Raises:
        LedgerError: A part of it is missing or damaged.
    """
    return _DocumentBuilder(prices, with_secrets=with_secrets).build(ledger, record)


class _DocumentBuilder:
    def __init__(self, prices: PriceList | None, *, with_secrets: bool) -> None:
        self._prices = prices
        self._with_secrets = with_secrets
        self._number = 0
        self._model = ""

    def build(self, ledger: Ledger, record: SessionRecord) -> SessionDocument:
        turns = read_newest_turns(ledger, record, None)
        written = tuple(turn for turn in map(self._build_turn, turns) if turn.messages)
        return SessionDocument(
            title=self._clean_line(record.label), facts=tuple(self._list_facts(turns, written)), turns=written
        )

    def _list_facts(self, turns: Sequence[Turn], written: Sequence[DocumentTurn]) -> Iterator[str]:
        if turns:
            first, last = (format_utc_time(turns[at].steps[at].created) for at in (0, -1))
            yield first if first == last else f"{first} to {last}"
        models = dict.fromkeys(message.model for turn in written for message in turn.messages if message.model)
        if models:
            yield ", ".join(models)
        calls = sum(block.kind == "tool" for turn in written for each in turn.messages for block in each.blocks)
        counts = [format_count(self._number, "turn")]
        counts.append(format_count(sum(len(step.messages) for turn in turns for step in _list_shown(turn)), "message"))
        counts.append(format_count(calls, "tool call"))
        yield ", ".join(counts)
        usages = [turn.usage for turn in written if turn.usage]
        yield format_usage(add_usages(usages) if usages else None, _sum_tokens(turns))
        costs = [turn.cost for turn in written if turn.cost is not None]
        if costs:
            cost = add_costs(costs)
            yield f"cost {cost}" + (f", at {describe_prices(cost)}" if cost.date else "")

    def _build_turn(self, turn: Turn) -> DocumentTurn:
        first = turn.steps[0]
        if opens_turn(first):
            self._number += 1
        word = _get_turn_title(first, self._number)
        results = _pair_results([message for step in _list_shown(turn) for message in step.messages])
        self._model = ""
        messages = tuple(message for step in _list_shown(turn) for message in self._build_step(step, results))
        usages = [usage for step in turn.steps if step.kind in ("reply", "turn") and (usage := _get_usage(step))]
        return DocumentTurn(
            title=word,
            excerpt=_get_excerpt(messages) if word else "",
            time=format_utc_time(first.created),
            messages=messages,
            usage=add_usages(usages) if usages else None,
            cost=self._sum_costs(turn.steps),
            tokens=_sum_tokens([turn]),
            is_open=bool(word) and turn.is_open,
        )

    def _sum_costs(self, steps: Iterable[Step]) -> Cost | None:
        if self._prices is None:
            return None
        costs = [cost for step in steps if (cost := compute_step_cost(step, self._prices)) is not None]
        return add_costs(costs) if costs else None

    def _build_step(self, step: Step, results: dict[int, list[ToolResult]]) -> Iterator[DocumentMessage]:
        usage = _get_usage(step) if step.kind == "reply" else None
        model = self._clean_line(step.payload.model or "")
        for message in step.messages:
            blocks = tuple(block for part in message.parts for block in self._build_part(part, results))
            is_reply = message.role == "assistant"
            if blocks or (is_reply and usage):
                yield DocumentMessage(
                    role=message.role,
                    blocks=blocks,
                    model=model if is_reply and model != self._model else "",
                    usage=usage if is_reply else None,
                    cost=self._sum_costs([step]) if is_reply and usage else None,
                )
                self._model = model if is_reply else self._model
            usage = None if is_reply else usage  # of the whole reply, shown once
        notes = tuple(self._list_notes(step))
        if notes:
            yield DocumentMessage(role="note", blocks=notes)

    def _list_notes(self, step: Step) -> Iterator[DocumentBlock]:
        payload = step.payload
        if isinstance(payload, CompactionPayload):
            before, after = payload.tokens_before, payload.tokens_after
            sizes = f": {before:,} to {after:,} tokens" if before is not None and after is not None else ""
            title = f"The turns above were compacted{sizes}"
            yield DocumentBlock(kind="note", title=title, text=self._clean(payload.summary))
        elif step.kind == "revert":
            yield DocumentBlock(kind="note", title="The last compaction or message was undone")
        elif step.kind == "interrupted":
            yield DocumentBlock(kind="note", title="The turn was interrupted")
        if isinstance(payload, ReplyPayload) and payload.error:
            yield DocumentBlock(kind="note", title="The call failed", text=self._clean(payload.error))

    def _build_part(self, part: Part, results: dict[int, list[ToolResult]]) -> Iterator[DocumentBlock]:
        if isinstance(part, Text):
            if part.text.strip():
                yield DocumentBlock(kind="text", text=self._clean(part.text))
        elif isinstance(part, Reasoning):
            if part.text.strip():
                yield DocumentBlock(kind="reasoning", title="Reasoning", text=self._clean(part.text))
        elif isinstance(part, ToolCall):
            yield self._build_call(part, results.get(id(part), []))
        elif isinstance(part, ToolResult):
            if id(part) not in results:  # one that belongs to a call is shown there
                yield self._build_call(ToolCall(part.call_id, part.name or "tool result"), [part])
        else:
            yield from self._build_media(part)

    def _build_call(self, call: ToolCall, results: Sequence[ToolResult]) -> DocumentBlock:
        arguments: dict[str, Any] = dict(call.arguments)
        if call.raw and not arguments:
            arguments = {"arguments": call.raw}  # not an object in JSON
        cleaned = self._clean_json(arguments)
        shown = [block for result in results for part in result.parts for block in self._build_result(part)]
        return DocumentBlock(
            kind="tool",
            title=self._clean_line(call.name),
            text=_summarize_arguments(cleaned),
            arguments=cleaned,
            results=tuple(shown),
            is_error=any(result.is_error for result in results),
        )

    def _build_result(self, part: Part) -> Iterator[DocumentBlock]:
        if isinstance(part, Text):
            yield DocumentBlock(kind="code", text=self._clean(part.text))
        else:
            yield from self._build_part(part, {})

    def _build_media(self, part: Image | File | Opaque) -> Iterator[DocumentBlock]:
        if isinstance(part, Opaque):
            kind = self._clean_line(str(part.block.get("type") or "block"))
            text = json.dumps(self._clean_json(dict(part.block)), ensure_ascii=False, indent=2, default=str)
            yield DocumentBlock(kind="code", title=f"{kind} ({self._clean_line(part.api)})", text=visible(text))
            return
        name = "image" if isinstance(part, Image) else "file"
        url = "" if part.url.startswith("data:") else part.url
        words = [name, getattr(part, "name", ""), part.mime, url, part.file_id]
        data = _decode_media(part)
        words.append(format_count(len(data), "byte") if data else "")
        title = self._clean_line(" ".join(filter(None, words)))
        yield DocumentBlock(kind="image", title=title, image=build_image_url(data))

    def _clean(self, text: str) -> str:
        """Return a text without secrets, carriage returns and hidden characters."""
        shown = text if self._with_secrets else redact(text).text
        return visible(shown.replace("\r\n", "\n"))

    def _clean_line(self, text: str) -> str:
        return visible_line(self._clean(text))

    def _clean_json(self, value: Any) -> Any:  # noqa: ANN401 - JSON has many types
        redacted = value if self._with_secrets else redact_json(value)
        return _clean_values(redacted)


def _clean_values(value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, str):
        return visible(value.replace("\r\n", "\n"))
    if isinstance(value, dict):
        return {visible_line(str(key)): _clean_values(each) for key, each in value.items()}
    return [_clean_values(each) for each in value] if isinstance(value, list | tuple) else value


def _get_usage(step: Step) -> Usage | None:
    """Return the usage of a step, None if unknown or all zero."""
    usage = step.payload.usage if isinstance(step.payload, ReplyPayload) else None
    return usage if usage and usage.total_tokens else None


def _list_shown(turn: Turn) -> list[Step]:
    """Return the steps of a turn without rendered inputs.

    These repeat the user message.
    """
    return [step for step in turn.steps if step.kind != "sealed"]


def _sum_tokens(turns: Iterable[Turn]) -> int:
    """Return the sum of tokens of turns, as `session show` counts them."""
    return sum(step.tokens for turn in turns for step in turn.steps)


def _get_turn_title(first: Step, number: int) -> str:
    if first.kind in MARKER_KINDS:
        return ""
    return "Start" if is_session_start_step(first) else "System" if is_unanswered_input(first) else f"Turn {number}"


def _get_excerpt(messages: Iterable[DocumentMessage]) -> str:
    texts = (block.text for message in messages for block in message.blocks if block.kind == "text")
    return shorten(" ".join(next(texts, "").split()), _MAX_EXCERPT_CHARACTERS)


def _pair_results(messages: Iterable[Message]) -> dict[int, list[ToolResult]]:
    """Return the results of each tool call by the call's `id()`.

    Each result has a key as well. Providers may repeat the ids of calls or leave them out: a result belongs to the
    oldest open call that fits.
    """
    paired: dict[int, list[ToolResult]] = {}
    waiting: list[ToolCall] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.append(part)
            elif isinstance(part, ToolResult):
                call = next((each for each in waiting if each.id == part.call_id), None)
                if call is not None:
                    waiting.remove(call)
                    paired.setdefault(id(call), []).append(part)
                    paired[id(part)] = []
    return paired


def _summarize_arguments(arguments: dict[str, Any]) -> str:
    """Return the first argument that is a text in one line."""
    text = next((value for value in arguments.values() if isinstance(value, str)), "")
    return shorten(" ".join(text.split()), _MAX_EXCERPT_CHARACTERS)


def _decode_media(part: Image | File) -> bytes:
    """Return the bytes of an image or file, b"" if they are not stored."""
    try:
        if part.data:
            return b64decode(part.data, validate=True)
        head, _, body = part.url.partition(",")
        if head.startswith("data:"):
            return b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
    except ValueError:
        pass
    return b""


def build_image_url(data: bytes) -> str:
    """Return the `data:` URL of an image, or "" if its type is unknown."""
    for mime, signature in _IMAGE_SIGNATURES.items():
        if signature.match(data):
            return f"data:{mime};base64,{b64encode(data).decode()}"
    return ""


def find_data_image(url: str) -> str:
    """Return a `data:` URL with a verified image type, or ""."""
    return build_image_url(_decode_media(Image(url=url)))


def format_usage(usage: Usage | None, tokens: int, cost: Cost | None = None) -> str:
    """Return the tokens and the cost of a turn as text."""
    if usage is None:
        return f"~{format_count(tokens, 'token')}" if tokens else ""
    cached = (
        f" ({format_share(usage.cached_input_tokens / usage.input_tokens)} cached)" if usage.cached_input_tokens else ""
    )
    money = "" if cost is None else f" · cost {cost}" if cost.unpriced_calls else f" · {cost}"
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{money}"


def format_utc_time(milliseconds: int) -> str:
    """Return a time in UTC to the minute, or "" if it is out of range."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def get_safe_link_scheme(url: str) -> str | None:
    """Return the scheme of a URL, "" if relative, None if not allowed."""
    bare = "".join(character for character in url if character > " ")  # browsers skip these before a scheme
    found = _SCHEME.match(bare)
    if found is None:
        return None if bare.startswith(("//", "\\")) else ""
    scheme = found[0][:-1].lower()
    return scheme if scheme in LINK_SCHEMES else None


# ---- Markdown -----------------------------------------------------------------------------------------------------

_ROLE_NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool", "note": "Note"}
_FENCES = re.compile(r"`{3,}")
_CODE = re.compile(
    r"^[ ]{0,3}(?P<fence>`{3,}(?!`)|~{3,}(?!~))[^\n]*\n.*?^[ ]{0,3}(?P=fence)[`~]*[ \t]*$"
    r"|(?<!`)(?P<run>`+)(?!`)[^\n]*?(?<!`)(?P=run)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_RISKY = re.compile(r"[<&](?=[A-Za-z/!?#])|!(?=\[)|(?<=\n)(?=[ >]*\[[^\]\n]+\]:)|\A(?=[ >]*\[[^\]\n]+\]:)")


def write_markdown(document: SessionDocument) -> str:
    """Return a document as Markdown, with tool calls folded in `<details>`."""
    lines = [f"# {_escape_line(document.title)}", "", *(f"- {_escape_line(fact)}" for fact in document.facts if fact)]
    for turn in document.turns:
        if turn.title:
            facts = (turn.time, format_usage(turn.usage, turn.tokens, turn.cost), "open" if turn.is_open else "")
            lines += ["", f"## {turn.title}", "", f"*{' · '.join(filter(None, facts))}*"]
        for message in turn.messages:
            if message.role != "note":
                model = f" · {_escape_line(message.model)}" if message.model else ""
                lines += ["", f"### {_ROLE_NAMES.get(message.role, message.role)}{model}"]
            for block in message.blocks:
                lines += ["", *_write_block(block)]
    return "\n".join(lines) + "\n"


def _write_block(block: DocumentBlock) -> list[str]:
    if block.kind == "text":
        return _quote_text(block.text)
    if block.kind == "reasoning":
        return _fold(block.title, _quote_text(block.text))
    if block.kind == "tool":
        title = f"{block.title}{' (error)' if block.is_error else ''}{f': {block.text}' if block.text else ''}"
        inner: list[str] = []
        if block.arguments:
            inner += _fence(json.dumps(block.arguments, ensure_ascii=False, indent=2, default=str), "json")
        for result in block.results:
            inner += ["", *_write_block(result)] if inner else _write_block(result)
        return _fold(title, inner)
    if block.kind == "image":  # a data: URL would be megabytes of text, which few readers of Markdown show
        left_out = ", which is in the HTML export" if block.image else ""
        return [f"[{_escape_line(block.title)}{left_out}]"]
    if block.kind == "note":
        return _fold(block.title, _quote_text(block.text)) if block.text else [f"*{_escape_line(block.title)}*"]
    return [*([f"**{_escape_line(block.title)}**", ""] if block.title else []), *_fence(block.text)]


def _fold(title: str, lines: Iterable[str]) -> list[str]:
    return ["<details>", f"<summary>{escape(title)}</summary>", "", *lines, "", "</details>"]


def _fence(text: str, language: str = "text") -> list[str]:
    """Return a text as a code block whose fence does not occur in it."""
    longest = max(map(len, _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}{language}", *text.rstrip("\n").split("\n"), fence]


def _quote_text(text: str) -> list[str]:
    """Return a message as a quote, as Markdown if that is safe, otherwise as code."""
    escaped = _escape_markdown(text) if len(text) <= MAX_MARKDOWN_CHARACTERS else ""
    lines = escaped.split("\n") if escaped and _is_safe_markdown(escaped) else _fence(text)
    return [f"> {line}".rstrip() for line in lines]


def _escape_markdown(text: str) -> str:
    r"""Return Markdown with risky syntax outside code escaped."""
    pieces, at = [], 0
    for found in _CODE.finditer(text):
        pieces += [_RISKY.sub(_add_backslash, text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*pieces, _RISKY.sub(_add_backslash, text[at:])])


def _add_backslash(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _is_safe_markdown(text: str) -> bool:
    """True if no Markdown reader finds HTML, images or hidden text in it."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": MAX_MARKDOWN_LEVELS}).enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign] # noqa: ARG005 - checked below
    environment: dict[str, Any] = {}
    try:
        tokens = parser.parse(text, environment)
    except RecursionError:
        return False
    return not environment.get("references") and all(map(_is_safe_token, iterate_tokens(tokens)))


def iterate_tokens(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield Markdown tokens with those inside of them."""
    for token in tokens:
        yield token
        yield from iterate_tokens(token.children or ())


def _is_safe_token(token: Token) -> bool:
    if token.type in ("html_block", "html_inline", "image") or token.level >= MAX_MARKDOWN_LEVELS - 1:
        return False
    if token.type == "link_open" and get_safe_link_scheme(str(token.attrGet("href") or "")) is None:
        return False
    return token.type == "inline" or visible(token.content) == token.content


_MARKDOWN_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~&!])")


def _escape_line(text: str) -> str:
    """Return a text in one line in which no sign has a meaning in Markdown."""
    return _MARKDOWN_SIGNS.sub(r"\\\1", " ".join(text.split()))
