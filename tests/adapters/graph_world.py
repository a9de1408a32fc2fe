"""Agents of LangChain and LangGraph over a scripted model. Takes seconds to import, so tests do it late."""

from __future__ import annotations

import warnings
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
    trim_messages,
)
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import create_react_agent
from pydantic import Field

from nexus_core.adapters.langgraph import fit_hook, fit_messages, fit_middleware

__all__ = [
    "AIMessage",
    "ChatMessage",
    "HumanMessage",
    "RemoveMessage",
    "SystemMessage",
    "ToolMessage",
    "convert_to_openai_messages",
    "convert_to_openai_tool",
    "fit_hook",
    "fit_messages",
    "fit_middleware",
]

PROMPT = "Be thorough."
QUESTION = "Look everywhere."


class ScriptedModel(BaseChatModel):
    """Asks for tools for a while, two at a time, then answers; remembers what it was sent."""

    model_name: str = "gpt-4o"
    rounds: int = 30
    sent: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:  # noqa: ARG002 - they are known
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> ChatResult:  # noqa: ARG002 - LangChain's
        self.sent.append(list(messages))
        number = len(self.sent)
        calls = [{"name": "look", "args": {"path": f"{number}{each}"}, "id": f"{number}{each}"} for each in "ab"]
        said = AIMessage("Nothing.") if number > self.rounds else AIMessage(f"round {number}", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"There is nothing in {path}. " * 20


def agent_with_middleware(model: ScriptedModel, **options: Any) -> Any:
    return create_agent(model, tools=[look], system_prompt=PROMPT, middleware=[fit_middleware(**options)])


def agent_with_hook(model: ScriptedModel, **options: Any) -> Any:
    hook = fit_hook(model="gpt-4o", tools=[look], system=PROMPT, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated, and used
        return create_react_agent(model, [look], prompt=PROMPT, pre_model_hook=hook)


def asked() -> dict[str, Any]:
    return {"messages": [HumanMessage(QUESTION)]}


def trimmed(messages: list[BaseMessage], tokens: int) -> list[BaseMessage]:
    """What LangChain itself makes of a conversation that is too long."""
    kept: list[BaseMessage] = trim_messages(
        messages, max_tokens=tokens, strategy="last", token_counter=count_tokens_approximately, include_system=True
    )
    return kept
