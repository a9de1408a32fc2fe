"""Graphs of LangGraph over a saver. Takes seconds to import, so tests do it late."""

from __future__ import annotations

from operator import add
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from nexus_core.adapters.langgraph_checkpoints import NexusSaver
from tests.adapters.checkpoint_program import save
from tests.adapters.graph_world import ScriptedModel, look

__all__ = [
    "AIMessage",
    "Command",
    "EncryptedSerializer",
    "HumanMessage",
    "InMemorySaver",
    "JsonPlusSerializer",
    "NexusSaver",
    "RemoveMessage",
    "ScriptedModel",
    "checkpointer_test",
    "save",
    "validate",
]


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}, "recursion_limit": 1000}


def asks(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=f"human {text}")]}


def tool_agent(saver: Any, rounds: int = 2) -> Any:
    """An agent that calls two tools in each round, then answers."""
    return create_agent(ScriptedModel(rounds=rounds), tools=[look], checkpointer=saver)


def long_graph(saver: Any, supersteps: int, text: str = "Nothing there, either. " * 20) -> Any:
    """A graph that adds one message in each superstep."""

    def step(state: MessagesState) -> dict[str, Any]:
        number = len(state["messages"])
        return {"messages": [AIMessage(f"{number}: {text}", id=f"reply {number}")]}

    graph = StateGraph(MessagesState).add_node("step", step).add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if len(state["messages"]) > supersteps else "step")
    return graph.compile(checkpointer=saver)


def editing_graph(saver: Any) -> Any:
    """A graph that returns the messages that the question names: new, changed or removed ones."""

    def answer(state: MessagesState) -> dict[str, Any]:
        asked = str(state["messages"][-1].content)
        if asked == "change":
            return {"messages": [AIMessage("Changed.", id="reply"), AIMessage("Done.")]}
        if asked == "remove":
            return {"messages": [RemoveMessage(id="reply")]}
        if asked == "clear":
            return {"messages": [RemoveMessage(id="__remove_all__")]}
        return {"messages": [AIMessage("First.", id="reply")]}

    graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return graph.compile(checkpointer=saver)


class Approved(TypedDict, total=False):
    messages: Annotated[list[Any], add]
    approved: str


def approval_graph(saver: Any) -> Any:
    """A graph that waits for a person."""

    def ask(state: Approved) -> dict[str, Any]:  # noqa: ARG001 - LangGraph's
        return {"approved": interrupt("Delete it?")}

    graph = StateGraph(Approved).add_node("ask", ask).add_edge(START, "ask")
    return graph.compile(checkpointer=saver)


def nested_graph(saver: Any) -> Any:
    """A graph with a subgraph that has messages of its own."""

    def reply(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"inner {len(state['messages'])}")]}

    inner = StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply").compile(checkpointer=True)
    return StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)
