"""For LangGraph and LangChain: the part of a conversation that fits, in LangChain's own messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core.dialects.fields import at, named
from nexus_core.dialects.requests import no_list
from nexus_core.errors import MessageError, UsageError
from nexus_core.history.fit import fit, require_options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from langchain.agents.middleware import AgentMiddleware

T = TypeVar("T")


def fit_messages(messages: Sequence[T], *, tools: Iterable[Any] | None = (), **options: Any) -> list[T]:  # noqa: ANN401 - as for fit
    """The messages that fit: the caller's own objects, but for what had to be mended or shortened.

    The first of them is the user's, as most providers want it; `start_with_user=False` leaves that open.

    Args:
        messages: LangChain's messages. Only as many are read as fit.
        tools: What the model is offered, in any form that LangChain knows.
        options: As for `nexus_core.fit`: model, budget, system, strategy, result_tokens…

    Raises:
        BudgetError: What must not be left out does not fit.
    """
    from langchain_core.messages import convert_to_messages  # noqa: PLC0415 - for those who have it
    from langchain_core.utils.function_calling import convert_to_openai_tool  # noqa: PLC0415 - as above

    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
        raise no_list(messages)
    given = Converted(messages)
    offered = [convert_to_openai_tool(tool) for tool in tools or ()]
    fitted = fit(given, api="openai", tools=offered, **{"start_with_user": True} | options)
    own = {id(said): messages[place] for place, said in given.made.items()}
    kept: list[Any] = []
    for said in fitted.messages:
        kept += [own[id(said)]] if id(said) in own else convert_to_messages([said])
    return kept


def fit_hook(**options: Any) -> Callable[[Any], dict[str, list[Any]]]:  # noqa: ANN401 - as for fit_messages
    """For `create_react_agent(…, pre_model_hook=fit_hook(…))`: the model reads what fits, the state keeps everything.

    Args:
        options: As for `fit_messages`; tools and system are what the agent has, to be counted.

    Raises:
        UsageError: There are no messages in the state; by the hook, when it is called.
    """
    require_options(options)

    def hook(state: Any) -> dict[str, list[Any]]:  # noqa: ANN401 - a dict or the caller's own class
        messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
        if messages is None:
            hint = "the state of the graph has them as `messages`, as that of create_react_agent does"
            raise UsageError(f"there are no messages in the state, which is {named(state)}", hint=hint)
        return {"llm_input_messages": fit_messages(messages, **options)}

    return hook


def fit_middleware(**options: Any) -> AgentMiddleware[Any, Any]:  # noqa: ANN401 - as for fit_messages
    """For `create_agent(…, middleware=[fit_middleware(…)])`: the model reads what fits, the state keeps everything.

    The prompt and the tools of each call are counted.

    Args:
        options: As for `fit_messages`; `model` is that of the call, where it has a name.
    """
    import asyncio  # noqa: PLC0415 - for those who have it

    from langchain.agents.middleware import AgentMiddleware  # noqa: PLC0415 - as above

    require_options(options)

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

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401 - as above
            return await handler(await asyncio.to_thread(fitted, request))

    return FitMiddleware()


class Converted(Sequence[dict[str, Any]]):
    """LangChain's messages as dicts of OpenAI's chat, each made when it is looked at.

    Args:
        messages: LangChain's.

    Attributes:
        made: The dicts so far, by their places.
    """

    def __init__(self, messages: Sequence[Any]) -> None:
        self._messages = messages
        self.made: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - a place or a slice, a dict or a list of them
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        at = range(len(self))[place]
        if at not in self.made:
            self.made[at] = _converted(self._messages[at], at)
        return self.made[at]


def _converted(message: Any, place: int) -> dict[str, Any]:  # noqa: ANN401 - whatever LangChain takes for a message
    from langchain_core.messages import convert_to_openai_messages  # noqa: PLC0415 - for those who have it

    with at(f"messages[{place}]"):
        try:
            made = convert_to_openai_messages([message])
        except (ValueError, NotImplementedError):
            made = [_taken_over(message)]
        if len(made) != 1:
            hint = "LangChain has a ToolMessage for each"
            raise MessageError("the results of several tools are in one message", hint=hint)
        for call in made[0].get("tool_calls") or ():
            call["id"] = call["id"] or ""  # a call may be without; `fit` gives it one
        return made[0]


def _taken_over(message: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """A message with blocks that LangChain cannot translate: they count as they are."""
    from langchain_core.messages import convert_to_openai_messages  # noqa: PLC0415 - as above

    try:
        (bare,) = convert_to_openai_messages([message.model_copy(update={"content": ""})])
    except (AttributeError, ValueError, NotImplementedError):
        hint = "use the messages of langchain_core.messages"
        raise MessageError(f"{type(message).__name__} is not a message for a model", hint=hint) from None
    return {**bare, "content": message.content}
