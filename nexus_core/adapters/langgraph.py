"""LangGraph and LangChain: fitting the messages of a conversation into a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core.dialects.fields import ErrorPath, describe_json_value
from nexus_core.dialects.requests import build_not_a_list_error
from nexus_core.errors import MessageError, UsageError
from nexus_core.history.fit import fit_messages as fit
from nexus_core.history.fit import require_fit_options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from langchain.agents.middleware import AgentMiddleware

T = TypeVar("T")


def fit_messages(messages: Sequence[T], *, tools: Iterable[Any] | None = (), **options: Any) -> list[T]:  # noqa: ANN401 - as for fit_messages of nexus_core
    """Return the messages that fit: the caller's own objects, except those that were repaired or truncated.

    The first of them is a user message, as most providers require; `start_with_user=False` turns that off.

    Args:
        messages: LangChain's messages. Only as many are read as fit.
        tools: The tools of the call, in any form that LangChain accepts.
        options: As for `nexus_core.fit_messages`: model, budget, system, strategy, result_tokens…

    Raises:
        BudgetError: The messages that must be kept do not fit.
    """
    from langchain_core.messages import convert_to_messages
    from langchain_core.utils.function_calling import convert_to_openai_tool

    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
        raise build_not_a_list_error(messages)
    converted = ConvertedMessages(messages)
    definitions = [convert_to_openai_tool(tool) for tool in tools or ()]
    fitted = fit(converted, api="openai", tools=definitions, **options)
    originals = {id(each): messages[index] for index, each in converted.made.items()}
    kept: list[Any] = []
    for message in fitted.messages:
        kept += [originals[id(message)]] if id(message) in originals else convert_to_messages([message])
    return kept


def fit_hook(**options: Any) -> Callable[[Any], dict[str, list[Any]]]:  # noqa: ANN401 - as for fit_messages
    """Return a hook for `create_react_agent(…, pre_model_hook=fit_hook(…))`. The state keeps all messages.

    Args:
        options: As for `fit_messages`; pass the agent's tools and system prompt, to be counted.

    Raises:
        UsageError: The state has no messages; raised by the hook when it is called.
    """
    require_fit_options(options)

    def hook(state: Any) -> dict[str, list[Any]]:  # noqa: ANN401 - a dict or the caller's own class
        messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
        if messages is None:
            hint = "the state of the graph has them as `messages`, as that of create_react_agent does"
            raise UsageError(f"the state has no messages: it is {describe_json_value(state)}", hint=hint)
        return {"llm_input_messages": fit_messages(messages, **options)}

    return hook


def fit_middleware(**options: Any) -> AgentMiddleware[Any, Any]:  # noqa: ANN401 - as for fit_messages
    """Return middleware for `create_agent(…, middleware=[fit_middleware(…)])`. The state keeps all messages.

    The prompt and the tools of each call are counted.

    Args:
        options: As for `fit_messages`; `model` is that of the call, if it has a name.
    """
    import asyncio

    from langchain.agents.middleware import AgentMiddleware

    require_fit_options(options)

    def fitted(request: Any) -> Any:  # noqa: ANN401 - LangChain's ModelRequest
        name = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
        given = {
            "model": name if isinstance(name, str) else "",
            "system": request.system_prompt,
            "tools": request.tools,
        }
        return request.override(messages=fit_messages(request.messages, **given | options))

    class FitMiddleware(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - LangChain's
            return handler(fitted(request))

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401 - LangChain's
            return await handler(await asyncio.to_thread(fitted, request))

    return FitMiddleware()


class ConvertedMessages(Sequence[dict[str, Any]]):
    """LangChain's messages as dicts of OpenAI's chat API, each converted on access.

    Args:
        messages: LangChain's messages.

    Attributes:
        made: The dicts converted so far, by index.
    """

    def __init__(self, messages: Sequence[Any]) -> None:
        self._messages = messages
        self.made: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - an index or a slice, a dict or a list of them
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        at = range(len(self))[index]
        if at not in self.made:
            self.made[at] = convert_message(self._messages[at], at)
        return self.made[at]


def convert_message(message: Any, index: int) -> dict[str, Any]:  # noqa: ANN401 - any message that LangChain accepts
    """Return a message of LangChain as a dict of OpenAI's chat API.

    Raises:
        MessageError: It is not a message for a model. The error has its index.
    """
    from langchain_core.messages import convert_to_openai_messages

    with ErrorPath(f"messages[{index}]"):
        try:
            made = convert_to_openai_messages([message])
        except (ValueError, NotImplementedError):
            made = [_convert_unknown_blocks(message)]
        if len(made) != 1:
            hint = "LangChain has a ToolMessage for each"
            raise MessageError("the results of several tools are in one message", hint=hint)
        for call in made[0].get("tool_calls") or ():
            call["id"] = call["id"] or ""  # a call may have none; fitting assigns one
        return made[0]


def _convert_unknown_blocks(message: Any) -> dict[str, Any]:  # noqa: ANN401 - any message that LangChain accepts
    """Convert a message with blocks that LangChain cannot translate. They are counted as they are."""
    from langchain_core.messages import convert_to_openai_messages

    try:
        (bare,) = convert_to_openai_messages([message.model_copy(update={"content": ""})])
    except (AttributeError, ValueError, NotImplementedError):
        hint = "use the messages of langchain_core.messages"
        raise MessageError(f"{type(message).__name__} is not a message for a model", hint=hint) from None
    return {**bare, "content": message.content}
