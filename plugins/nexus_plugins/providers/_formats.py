"""Request bodies, replies and stream events of chat completions, Responses, Anthropic's messages and Gemini."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import quote

from nexus_core import Message, MessageError, get_dialect
from nexus_core.plugin import ReasoningDelta, TextDelta, estimate
from nexus_core.plugin.settings import get_host
from nexus_plugins.providers._secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nexus_core import AssembledContext
    from nexus_core.plugin import SummaryRequest

RESERVED_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)
"""Headers that no setting can set."""
CUT_OFF_NOTE = "[The summary was cut off here.]"
REASONING_TOKENS = 8000
"""Tokens for reasoning, where it counts as output. The prompt itself limits the length of the summary."""


class UnreadableReplyError(Exception):
    """Raised when a response has no reply or no summary. The message is a predicate of the endpoint."""


def parse_json(body: bytes, what: str = "") -> object:
    """Parse the JSON body of a response, or of a part of it that errors name.

    Raises:
        UnreadableReplyError: It is not JSON.
    """
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):  # invalid UTF-8 is a ValueError too
        raise UnreadableReplyError(
            f"sent an {what} that is not JSON" if what else "answered with something that is not JSON"
        ) from None
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
    except UnreadableReplyError:
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
_THINK_TAGS = re.compile(r"\A\s*+<think>.*?(?:</think>|\Z)", re.DOTALL)


class ChatCompletionsFormat:
    """OpenAI's chat completions, which most servers accept."""

    ADDRESS: ClassVar[str] = "https://api.openai.com/v1"
    HEADERS: ClassVar[dict[str, str]] = {}

    def url(self, base_url: str, model: str) -> str:  # noqa: ARG002 - part of the protocol
        """Return the URL of requests."""
        return f"{base_url.rstrip('/')}/chat/completions"

    stream_url = url

    def authorise(self, key: Secret) -> dict[str, Secret]:
        """Return the header that holds the key."""
        return {"authorization": Secret(f"Bearer {key.reveal()}")}

    def write_call(self, context: AssembledContext, model: str) -> dict[str, Any]:
        """Return the body of a request for a streamed reply."""
        body = context.to("openai", model=model)
        return {**body, "stream": True, "stream_options": {"include_usage": True}}

    def read_event(self, event: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the text and reasoning of an event."""
        delta = find_value(event, "choices", 0, "delta")
        # Local servers and OpenRouter use either name.
        if reasoning := find_text(delta, "reasoning_content") or find_text(delta, "reasoning"):
            yield ReasoningDelta(reasoning)
        if text := find_text(delta, "content"):
            yield TextDelta(text)

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
            UnreadableReplyError: The reply has no summary.
        """
        choice, message = find_value(reply, "choices", 0), find_value(reply, "choices", 0, "message")
        if error := find_text(reply, "error", "message") or find_text(choice, "error", "message"):
            raise UnreadableReplyError(f"reported an error: {error}")
        if refusal := find_text(message, "refusal"):
            raise UnreadableReplyError(f"refused: {refusal}")
        ended = find_text(choice, "finish_reason")
        if ended == "content_filter":
            raise UnreadableReplyError("withheld its answer (content_filter)")
        content = find_value(message, "content")
        text = replace_surrogates(content if isinstance(content, str) else join_texts(content))
        text = _THINK_TAGS.sub("", text).strip()
        if not text:
            raise UnreadableReplyError(_explain_empty_completion(message, ended))
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

    def url(self, base_url: str, model: str) -> str:  # noqa: ARG002 - part of the protocol
        """Return the URL of requests. The base URL may end with or without `/v1`."""
        return f"{base_url.rstrip('/').removesuffix('/v1')}/v1/messages"

    stream_url = url

    def authorise(self, key: Secret) -> dict[str, Secret]:
        """Return the header that holds the key."""
        return {"x-api-key": key}

    def write_call(self, context: AssembledContext, model: str) -> dict[str, Any]:
        """Return the body of a request for a streamed reply."""
        return {**context.to("anthropic", model=model), "stream": True}

    def read_event(self, event: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the text and reasoning of an event."""
        if event.get("type") != "content_block_delta":
            return
        if text := find_text(event, "delta", "text"):
            yield TextDelta(text)
        if reasoning := find_text(event, "delta", "thinking"):
            yield ReasoningDelta(reasoning)

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
            UnreadableReplyError: The reply has no summary.
        """
        if error := find_text(reply, "error", "message"):
            raise UnreadableReplyError(f"reported an error: {error}")
        blocks, ended = find_value(reply, "content"), find_text(reply, "stop_reason")
        text = replace_surrogates(join_texts(blocks)).strip()
        if ended == "refusal":
            raise UnreadableReplyError(f"refused: {text}" if text else "refused")
        if not text:
            raise UnreadableReplyError(_explain_empty_message(blocks, ended))
        return f"{text}\n{CUT_OFF_NOTE}" if ended == "max_tokens" else text


def _explain_empty_message(blocks: object, ended: str) -> str:
    if not isinstance(blocks, list):
        return "answered with JSON that is not a message"
    if ended == "tool_use":
        return "called a tool instead of writing a summary"
    return "ran out of tokens before it wrote anything" if ended == "max_tokens" else "wrote nothing"


_RESPONSES_FIELDS = (
    *("model", "instructions", "input", "tools", "reasoning", "include", "service_tier", "store"),
    *("safety_identifier", "user", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
)
_REASONING_EVENTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class ResponsesFormat(ChatCompletionsFormat):
    """OpenAI's Responses."""

    def url(self, base_url: str, model: str) -> str:  # noqa: ARG002 - part of the protocol
        """Return the URL of requests."""
        return f"{base_url.rstrip('/')}/responses"

    stream_url = url

    def write_call(self, context: AssembledContext, model: str) -> dict[str, Any]:
        """Return the body of a request for a streamed reply."""
        return {**context.to("responses", model=model), "stream": True}

    def read_event(self, event: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the text and reasoning of an event."""
        kind, delta = event.get("type"), find_text(event, "delta")
        if delta and kind == "response.output_text.delta":
            yield TextDelta(delta)
        elif delta and kind in _REASONING_EVENTS:
            yield ReasoningDelta(delta)

    def write(self, request: SummaryRequest, model: str, base_url: str) -> dict[str, Any]:  # noqa: ARG002 - part of the protocol
        """Return the request body for a summary."""
        if request.context is None:
            body: dict[str, Any] = {"model": model, "input": request.prompt}
        else:
            body = build_continuation(request.context, request.instruction, "responses", model, _RESPONSES_FIELDS)
        return {**body, "max_output_tokens": request.max_tokens + REASONING_TOKENS}

    def read(self, reply: object) -> str:
        """Return the summary in a reply.

        Raises:
            UnreadableReplyError: The reply has no summary.
        """
        return read_summary(reply, "responses")


_GEMINI_FIELDS = frozenset({"systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent", "labels"})
"""Fields of a request body; other fields of the SDK's `config` belong in `generationConfig`."""
_GEMINI_CLIENT_FIELDS = frozenset({"httpOptions", "automaticFunctionCalling", "shouldReturnHttpResponse"})
_UNDERSCORE = re.compile(r"_([a-z0-9])")


class GeminiFormat:
    """Google's Gemini."""

    ADDRESS: ClassVar[str] = "https://generativelanguage.googleapis.com"
    HEADERS: ClassVar[dict[str, str]] = {}

    def url(self, base_url: str, model: str) -> str:
        """Return the URL of requests."""
        return f"{self._build_url(base_url, model)}:generateContent"

    def stream_url(self, base_url: str, model: str) -> str:
        """Return the URL of requests for a streamed reply."""
        return f"{self._build_url(base_url, model)}:streamGenerateContent?alt=sse"

    def _build_url(self, base_url: str, model: str) -> str:
        """Return the URL of a model. The base URL may end with a version: `/v1` or `/v1beta`."""
        base, name = base_url.rstrip("/"), model if "/" in model else f"models/{model}"
        versioned = base if base.endswith(("/v1", "/v1beta")) else f"{base}/v1"
        return f"{versioned}/{quote(name, safe='/')}"

    def authorise(self, key: Secret) -> dict[str, Secret]:
        """Return the header that holds the key."""
        return {"x-goog-api-key": key}

    def write_call(self, context: AssembledContext, model: str) -> dict[str, Any]:
        """Return the body of a request."""
        return write_gemini_body(context.to("gemini", model=model))

    def read_event(self, event: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the text and reasoning of an event."""
        parts = find_value(event, "candidates", 0, "content", "parts")
        for part in parts if isinstance(parts, list) else ():
            if text := find_text(part, "text"):
                yield ReasoningDelta(text) if find_value(part, "thought") is True else TextDelta(text)

    def write(self, request: SummaryRequest, model: str, base_url: str) -> dict[str, Any]:  # noqa: ARG002 - part of the protocol
        """Return the request body for a summary."""
        if request.context is None:
            body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": request.prompt}]}]}
        else:
            fields = ("contents", "config")
            call = build_continuation(request.context, request.instruction, "gemini", model, fields)
            body = write_gemini_body(call)
            body.pop("toolConfig", None)
        return {**body, "generationConfig": {"maxOutputTokens": request.max_tokens + REASONING_TOKENS}}

    def read(self, reply: object) -> str:
        """Return the summary in a reply.

        Raises:
            UnreadableReplyError: The reply has no summary.
        """
        return read_summary(reply, "gemini")


def write_gemini_body(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the REST body for the arguments of the SDK's call."""
    config = {_to_camel_case(name): value for name, value in (call.get("config") or {}).items()}
    body: dict[str, Any] = {"contents": call["contents"]}
    body |= {name: value for name, value in config.items() if name in _GEMINI_FIELDS}
    if isinstance(body.get("systemInstruction"), str):
        body["systemInstruction"] = {"parts": [{"text": body["systemInstruction"]}]}
    known = _GEMINI_FIELDS | _GEMINI_CLIENT_FIELDS
    generation = {name: value for name, value in config.items() if name not in known}
    return body | ({"generationConfig": generation} if generation else {})


def _to_camel_case(name: str) -> str:
    return _UNDERSCORE.sub(lambda match: match[1].upper(), name)


def read_summary(reply: object, api: str) -> str:
    """Return the summary in a reply, read by the API's dialect.

    Raises:
        UnreadableReplyError: The reply has no summary.
    """
    if message := find_stream_error(reply):
        raise UnreadableReplyError(f"reported an error: {message}")
    try:
        read = get_dialect(api).read_reply(reply)
    except MessageError as error:
        raise UnreadableReplyError(f"answered with JSON that is not a reply: {error.what}") from None
    text = replace_surrogates("\n".join(each.content for each in read.messages)).strip()
    if read.stop == "refusal":
        raise UnreadableReplyError(f"refused: {text or read.stop_reason}")
    if not text:
        wanted = "called a tool instead of writing a summary" if read.stop == "tools" else "wrote nothing"
        raise UnreadableReplyError("ran out of tokens before it wrote anything" if read.stop == "length" else wanted)
    return f"{text}\n{CUT_OFF_NOTE}" if read.stop == "length" else text


def take_client_options(call: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the body and the further headers of an SDK's call: what only the SDK reads is in no body."""
    body = dict(call)
    extra, headers = body.pop("extra_body", None), body.pop("extra_headers", None)
    further = {str(name).lower(): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}
    if isinstance(betas := body.pop("betas", None), list):
        further["anthropic-beta"] = ",".join(map(str, betas))
    for name in ("extra_query", "timeout"):
        body.pop(name, None)
    kept = {name: value for name, value in further.items() if name not in RESERVED_HEADERS and value.isprintable()}
    return body | extra if isinstance(extra, dict) else body, kept


def find_stream_error(event: object) -> str:
    """Return the message of an event that reports an error, or "" for any other."""
    for path in (("error",), ("response", "error")):
        error = find_value(event, *path)
        if error:
            text = find_text(error, "message") or (error if isinstance(error, str) else json.dumps(error))
            kind = find_text(error, "type") or find_text(error, "code") or find_text(error, "status")
            return f"{kind}: {text}" if kind else text
    if find_value(event, "type") == "error":
        return find_text(event, "message") or "it did not say which"
    return ""


class WireFormat(Protocol):
    """The request and response bodies of one kind of endpoint.

    Attributes:
        ADDRESS: Base URL of the API's maker.
        HEADERS: Headers of every request, with lower-case names.
    """

    ADDRESS: ClassVar[str]
    HEADERS: ClassVar[dict[str, str]]

    def url(self, base_url: str, model: str, /) -> str:
        """Return the URL of requests."""

    def stream_url(self, base_url: str, model: str, /) -> str:
        """Return the URL of requests for a streamed reply."""

    def authorise(self, key: Secret, /) -> dict[str, Secret]:
        """Return the header that holds the key."""

    def write_call(self, context: AssembledContext, model: str, /) -> dict[str, Any]:
        """Return the body of a request for a streamed reply."""

    def read_event(self, event: Mapping[str, Any], /) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield the text and reasoning of an event."""

    def write(self, request: SummaryRequest, model: str, base_url: str, /) -> dict[str, Any]:
        """Return the request body for a summary."""

    def read(self, reply: object, /) -> str:
        """Return the summary in a reply. Raises UnreadableReplyError if there is none."""


FORMATS: dict[str, WireFormat] = {
    "openai": ChatCompletionsFormat(),
    "responses": ResponsesFormat(),
    "anthropic": AnthropicMessagesFormat(),
    "gemini": GeminiFormat(),
}
