"""pydantic-ai: a history processor that makes each call fit, and the conversion of its messages."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai import RunContext  # noqa: TC002 - pydantic-ai reads the annotations of a processor
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from nexus_core.dialects.registry import get_dialect
from nexus_core.errors import MessageError
from nexus_core.history.fit import fit_messages, require_fit_options
from nexus_core.runner import run_to_completion
from nexus_core.types.messages import Message, Opaque, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from nexus_core.history.fit import FitResult


class SourcedChatMessage(NamedTuple):
    """A dict of OpenAI's chat API for one part of a request, or for a whole response.

    Attributes:
        body: The dict.
        message: Index of the message.
        part: The part of the request; None for a response.
    """

    body: dict[str, Any]
    message: int
    part: Any


def fit_history(**options: Any) -> Callable[[RunContext[Any], list[ModelMessage]], Awaitable[list[ModelMessage]]]:  # noqa: ANN401 - as for fit_messages
    """Return a history processor: `Agent(…, capabilities=[ProcessHistory(fit_history(budget=50_000))])`.

    Tool calls and their results stay together, and the user message of a tool loop stays. The instructions and function
    tools of the call are counted. Messages come back as the same objects, except those that were shortened.

    Args:
        options: As for `nexus_core.fit_messages`. `model` is that of the run.
    """
    require_fit_options(options)

    async def fitted(ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        given = {"model": getattr(ctx.model, "model_name", "") or "", "tools": _list_tools(ctx)}
        return await run_to_completion(partial(fit_model_messages, messages, **given | options))

    return fitted


def fit_model_messages(messages: Sequence[ModelMessage], **options: Any) -> list[ModelMessage]:  # noqa: ANN401 - as for fit_messages
    """Return the messages of pydantic-ai that fit.

    Args:
        messages: The messages. The instructions of the newest request are counted, unless `system` is given.
        options: As for `nexus_core.fit_messages`.

    Raises:
        BudgetError: The messages that must be kept do not fit.
    """
    chat = [each for index, message in enumerate(messages) for each in convert_model_message(message, index)]
    instructions = next((each.instructions for each in reversed(messages) if isinstance(each, ModelRequest)), None)
    given: dict[str, Any] = {"api": "openai", "system": instructions}
    fitted: FitResult[dict[str, Any]] = fit_messages([each.body for each in chat], **given | options)
    known = {id(each.body): each for each in chat}
    results = {each.part.tool_call_id: each for each in chat if isinstance(each.part, ToolReturnPart)}
    return _rebuild_messages(messages, chat, [_find_source(body, known, results) for body in fitted.messages])


def convert_model_message(message: ModelMessage, index: int = 0) -> list[SourcedChatMessage]:
    """Return a message of pydantic-ai as dicts of OpenAI's chat API. A part that no API has gives none."""
    if isinstance(message, ModelResponse):
        return [SourcedChatMessage(_convert_response(message), index, None)]
    return [
        SourcedChatMessage(body, index, part) for part in message.parts if (body := _convert_part(part)) is not None
    ]


def read_model_message(message: ModelMessage) -> list[Message]:
    """Return a message of pydantic-ai in the neutral format."""
    dialect = get_dialect("openai")
    read: list[Message] = []
    for each in convert_model_message(message):
        try:
            read.append(dialect.read(each.body))
        except MessageError:  # of a newer version
            read.append(Message("assistant", (Opaque("openai", each.body),), api="openai"))
    return read


def read_model_usage(message: ModelMessage) -> Usage | None:
    """Return the usage of a response; None for a request, and if the provider reported none."""
    if not isinstance(message, ModelResponse) or not message.usage.has_values():
        return None
    usage = message.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_input_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.output_reasoning_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
    )


def _convert_response(message: ModelResponse) -> dict[str, Any]:
    body: dict[str, Any] = {"role": "assistant"}
    texts = [part.content for part in message.parts if isinstance(part, TextPart)]
    body["content"] = "".join(texts) if texts else None
    if thoughts := [part.content for part in message.parts if isinstance(part, ThinkingPart) and part.content]:
        body["reasoning_content"] = "\n".join(thoughts)
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    if calls:
        body["tool_calls"] = calls
    elif not texts:
        body["content"] = ""
    return body


def _convert_part(part: Any) -> dict[str, Any] | None:  # noqa: ANN401 - any part of a request
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, UserPromptPart):
        content = part.content
        return {"role": "user", "content": content if isinstance(content, str) else [*map(_convert_content, content)]}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    if isinstance(part, RetryFeedbackPart | RetryPromptPart):  # stored conversations may have the latter
        answered = {"role": "user"} if getattr(part, "tool_name", None) is None else {"role": "tool"}
        if answered["role"] == "tool":
            answered["tool_call_id"] = getattr(part, "tool_call_id", "")
        return {**answered, "content": part.model_response()}
    return None


def _convert_content(content: Any) -> dict[str, Any]:  # noqa: ANN401 - what a user's message may have
    if isinstance(content, str):
        return {"type": "text", "text": content}
    if isinstance(content, ImageUrl):
        return {"type": "image_url", "image_url": {"url": content.url}}
    if isinstance(content, BinaryContent):
        encoded = b64encode(content.data).decode()
        url = f"data:{content.media_type};base64,{encoded}"
        if content.media_type.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"file_data": url, "filename": content.identifier}}
    text = getattr(content, "content", None) or getattr(content, "url", None)
    return {"type": "text", "text": text if isinstance(text, str) else f"[{getattr(content, 'kind', 'content')}]"}


def _find_source(
    body: dict[str, Any], known: dict[int, SourcedChatMessage], results: dict[str, SourcedChatMessage]
) -> SourcedChatMessage | dict[str, Any]:
    """Return where a fitted dict comes from: itself if it is unknown, a copy of its part if that was truncated."""
    if id(body) in known:
        return known[id(body)]
    if body.get("role") == "tool" and (source := results.get(str(body.get("tool_call_id")))) is not None:
        return source._replace(part=replace(source.part, content=_get_text(body)))
    return body


def _rebuild_messages(
    messages: Sequence[ModelMessage],
    chat: Sequence[SourcedChatMessage],
    fitted: Sequence[SourcedChatMessage | dict[str, Any]],
) -> list[ModelMessage]:
    """Return the messages of fitted dicts, the caller's own where nothing was changed."""
    whole: dict[int, list[Any]] = {}
    for each in chat:
        whole.setdefault(each.message, []).append(each.part)
    rebuilt: list[ModelMessage] = []
    for index, group in groupby(fitted, lambda each: each.message if isinstance(each, SourcedChatMessage) else None):
        sources = list(group)
        if index is None:
            rebuilt += [_create_message(each) for each in sources if isinstance(each, dict)]
            continue
        message = messages[index]
        parts = [each.part for each in sources if isinstance(each, SourcedChatMessage)]
        is_same = len(parts) == len(whole[index]) and all(map(_is_same, parts, whole[index]))
        if is_same or isinstance(message, ModelResponse):
            rebuilt.append(message)
        else:
            rebuilt.append(replace(message, parts=parts))
    newest = messages[-1] if messages else None
    if isinstance(newest, ModelRequest) and newest.instructions and rebuilt and isinstance(rebuilt[-1], ModelRequest):
        rebuilt[-1] = rebuilt[-1] if rebuilt[-1] is newest else replace(rebuilt[-1], instructions=newest.instructions)
    return rebuilt


def _is_same(one: object, other: object) -> bool:
    return one is other


def _create_message(body: dict[str, Any]) -> ModelMessage:
    """Return a message for a dict that repairing or truncating has added."""
    text = _get_text(body)
    if body.get("role") == "assistant":
        calls = [
            ToolCallPart(each["function"]["name"], each["function"]["arguments"], each["id"])
            for each in body.get("tool_calls") or ()
        ]
        return ModelResponse([*([TextPart(text)] if text else []), *calls])
    if body.get("role") == "tool":
        return ModelRequest([ToolReturnPart(str(body.get("name") or ""), text, str(body.get("tool_call_id") or ""))])
    return ModelRequest([SystemPromptPart(text) if body.get("role") == "system" else UserPromptPart(text)])


def _get_text(body: dict[str, Any]) -> str:
    content = body.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(each.get("text") or "") if isinstance(each, dict) else json.dumps(each) for each in content)


def _list_tools(ctx: RunContext[Any]) -> list[dict[str, Any]]:
    definitions = getattr(ctx.tool_manager, "tool_defs", None) or ()
    return [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": each.description or "",
                "parameters": each.parameters_json_schema,
            },
        }
        for each in definitions
    ]
