"""Request and response bodies of chat completions and Anthropic's messages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from nexus_core import Message
from nexus_core.plugin import estimate
from nexus_plugins.providers._secrets import Secret
from nexus_plugins.providers._settings import get_host

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import AssembledContext
    from nexus_core.plugin import SummaryRequest

CUT_OFF_NOTE = "[The summary was cut off here.]"
REASONING_TOKENS = 8000
"""Tokens for reasoning, where it counts as output. The prompt itself limits the length of the summary."""


class NoSummaryError(Exception):
    """Raised when a reply has no summary. The message is a predicate of the endpoint."""


def parse_json(body: bytes) -> object:
    """Parse the JSON body of a response.

    Raises:
        NoSummaryError: The body is not JSON.
    """
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):  # invalid UTF-8 is a ValueError too
        raise NoSummaryError("answered with something that is not JSON") from None
    return value


def find_value(value: object, *path: str | int) -> object:
    """Return the value under nested keys and indexes of a JSON value, or None if there is none."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def find_text(value: object, *path: str | int) -> str:
    """Return the text under nested keys and indexes, or "" if there is none."""
    found = find_value(value, *path)
    return found if isinstance(found, str) else ""


def join_texts(blocks: object) -> str:
    """Return the joined texts of all text blocks."""
    if not isinstance(blocks, list):
        return ""
    return "".join(find_text(block, "text") for block in blocks if find_value(block, "type") == "text")


def replace_surrogates(text: str) -> str:
    """Return a text that can be encoded: surrogate pairs are joined, lone surrogates become �."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def find_error_message(body: bytes) -> str:
    """Return the error message of a response in any common shape, else its body."""
    try:
        value = parse_json(body)
    except NoSummaryError:
        return body[:4096].decode("utf-8", "replace")
    if isinstance(value, list):
        value = find_value(value, 0)
    candidates = [("error", "message"), ("error",), ("message",), ("detail",)]
    return next(
        (message for path in candidates if (message := find_text(value, *path))), replace_surrogates(json.dumps(value))
    )


def build_continuation(
    context: AssembledContext, instruction: str, api: str, model: str, keep: Iterable[str]
) -> dict[str, Any]:
    """Return the request body that appends the instruction to a conversation, so that its prefix is cached.

    Args:
        context: The next call of the conversation, without the instruction.
        instruction: The text of the last user message.
        api: The name of the API.
        model: The model.
        keep: The fields that the request keeps; others could make the reply something other than text.
    """
    tokens = (*context.message_tokens, estimate(instruction)) if context.message_tokens else ()
    extended = replace(context, progress=(*context.progress, Message("user", instruction)), message_tokens=tokens)
    body = extended.to(api, model=model)
    return {name: body[name] for name in keep if name in body}


# Fields that decide about the provider's prompt cache, and none that could make the reply something other than text.
_CHAT_FIELDS = (
    *("model", "messages", "tools", "reasoning_effort", "service_tier", "store", "safety_identifier", "user"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
)
# Some models on local servers write their reasoning into the reply.
_THINK_TAGS = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)


class ChatCompletionsFormat:
    """OpenAI's chat completions, which most servers accept."""

    ADDRESS: ClassVar[str] = "https://api.openai.com/v1"
    HEADERS: ClassVar[dict[str, str]] = {}

    def url(self, base_url: str) -> str:
        """Return the URL of requests."""
        return f"{base_url.rstrip('/')}/chat/completions"

    def authorise(self, key: Secret) -> dict[str, Secret]:
        """Return the header that holds the key."""
        return {"authorization": Secret(f"Bearer {key.reveal()}")}

    def write(self, request: SummaryRequest, model: str, base_url: str) -> dict[str, Any]:
        """Return the request body for a summary."""
        if request.context is None:
            body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": request.prompt}]}
        else:
            body = build_continuation(request.context, request.instruction, "openai", model, _CHAT_FIELDS)
        # OpenAI's newer models reject `max_tokens` and count reasoning as output. Most other servers do not know the
        # new field, and many reject a limit that does not fit into the window beside the prompt.
        if get_host(base_url) == get_host(self.ADDRESS):
            return {**body, "max_completion_tokens": request.max_tokens + REASONING_TOKENS}
        return {**body, "max_tokens": request.max_tokens}

    def read(self, reply: object) -> str:
        """Return the summary in a reply.

        Raises:
            NoSummaryError: The reply has no summary.
        """
        choice, message = find_value(reply, "choices", 0), find_value(reply, "choices", 0, "message")
        if error := find_text(reply, "error", "message") or find_text(choice, "error", "message"):
            raise NoSummaryError(f"reported an error: {error}")
        if refusal := find_text(message, "refusal"):
            raise NoSummaryError(f"refused: {refusal}")
        ended = find_text(choice, "finish_reason")
        if ended == "content_filter":
            raise NoSummaryError("withheld its answer (content_filter)")
        content = find_value(message, "content")
        text = replace_surrogates(content if isinstance(content, str) else join_texts(content))
        text = _THINK_TAGS.sub("", text, count=1).strip() if text.lstrip().startswith("<think>") else text.strip()
        if not text:
            raise NoSummaryError(_explain_empty_completion(message, ended))
        return f"{text}\n{CUT_OFF_NOTE}" if ended == "length" else text


def _explain_empty_completion(message: object, ended: str) -> str:
    if message is None:
        return "answered with JSON that is not a chat completion"
    if find_value(message, "tool_calls"):
        return "called a tool instead of writing a summary"
    return "ran out of tokens before it wrote anything" if ended == "length" else "wrote nothing"


_MESSAGES_FIELDS = (
    "model",
    "system",
    "messages",
    "tools",
    "thinking",
    "metadata",
    "service_tier",
)


class AnthropicMessagesFormat:
    """Anthropic's messages."""

    ADDRESS: ClassVar[str] = "https://api.anthropic.com"
    HEADERS: ClassVar[dict[str, str]] = {"anthropic-version": "2023-06-01"}

    def url(self, base_url: str) -> str:
        """Return the URL of requests. The base URL may end with or without `/v1`."""
        return f"{base_url.rstrip('/').removesuffix('/v1')}/v1/messages"

    def authorise(self, key: Secret) -> dict[str, Secret]:
        """Return the header that holds the key."""
        return {"x-api-key": key}

    def write(self, request: SummaryRequest, model: str, base_url: str) -> dict[str, Any]:  # noqa: ARG002 - part of the protocol
        """Return the request body for a summary."""
        if request.context is None:
            messages = [{"role": "user", "content": request.prompt}]
            return {"model": model, "messages": messages, "max_tokens": request.max_tokens}
        body = build_continuation(request.context, request.instruction, "anthropic", model, _MESSAGES_FIELDS)
        # `thinking` stays as it was, because a change would miss the cache; and reasoning counts as output.
        is_thinking = find_text(body, "thinking", "type") not in ("", "disabled")
        budget = find_value(body, "thinking", "budget_tokens")
        reasoning = (budget if isinstance(budget, int) else REASONING_TOKENS) if is_thinking else 0
        return {**body, "max_tokens": request.max_tokens + reasoning}

    def read(self, reply: object) -> str:
        """Return the summary in a reply.

        Raises:
            NoSummaryError: The reply has no summary.
        """
        if error := find_text(reply, "error", "message"):
            raise NoSummaryError(f"reported an error: {error}")
        blocks, ended = find_value(reply, "content"), find_text(reply, "stop_reason")
        text = replace_surrogates(join_texts(blocks)).strip()
        if ended == "refusal":
            raise NoSummaryError(f"refused: {text}" if text else "refused")
        if not text:
            raise NoSummaryError(_explain_empty_message(blocks, ended))
        return f"{text}\n{CUT_OFF_NOTE}" if ended == "max_tokens" else text


def _explain_empty_message(blocks: object, ended: str) -> str:
    if not isinstance(blocks, list):
        return "answered with JSON that is not a message"
    if ended == "tool_use":
        return "called a tool instead of writing a summary"
    return "ran out of tokens before it wrote anything" if ended == "max_tokens" else "wrote nothing"


class WireFormat(Protocol):
    """The request and response bodies of one kind of endpoint.

    Attributes:
        ADDRESS: Base URL of the API's maker.
        HEADERS: Headers of every request, with lower-case names.
    """

    ADDRESS: ClassVar[str]
    HEADERS: ClassVar[dict[str, str]]

    def url(self, base_url: str, /) -> str:
        """Return the URL of requests."""

    def authorise(self, key: Secret, /) -> dict[str, Secret]:
        """Return the header that holds the key."""

    def write(self, request: SummaryRequest, model: str, base_url: str, /) -> dict[str, Any]:
        """Return the request body for a summary."""

    def read(self, reply: object, /) -> str:
        """Return the summary in a reply. Raises NoSummaryError if there is none."""


FORMATS: dict[str, WireFormat] = {"openai": ChatCompletionsFormat(), "anthropic": AnthropicMessagesFormat()}
