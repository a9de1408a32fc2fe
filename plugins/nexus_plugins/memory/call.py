"""The tool `recall`, with which a model searches memories.

    from nexus_plugins.memory.call import RecallTool

    memories = RecallTool(nexus, session="support")
    session = nexus.session("support", tools=[*tools, memories.tool])
    ...
    for call in step.tool_calls:
        session.record(memories.run(call) if call.name in memories else call.result(run(call)))

Without a session, `memories.tool` is a definition for any API, and `memories.read(query)` is the text of an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import NexusError, Tool
from nexus_core.plugin.memory import format_memory

if TYPE_CHECKING:
    from nexus_core import Nexus
    from nexus_core.plugin.ledgers import CallResult, RecordedCall

NAME = "recall"
MAX_RECALLED = 8
"""Memories in one answer: the model can ask again in other words."""
RECALL = Tool(
    name=NAME,
    description="Search notes, rules of the user and earlier conversations. Ask again in other words if nothing fits.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "A question, or words that the answer may have."}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


class RecallTool:
    """The tool `recall`: its definition and its calls.

    Args:
        nexus: The Nexus whose sources are asked.
        session: The session that asks, whose own turns are not found; "" for none.
    """

    def __init__(self, nexus: Nexus, session: str = "") -> None:
        self._nexus = nexus
        self._session = session

    @property
    def tool(self) -> dict[str, object]:
        """The definition of the tool, for `tools=` of a session or an SDK."""
        return {"name": NAME, "description": RECALL.description, "input_schema": RECALL.parameters}

    def __contains__(self, name: object) -> bool:
        return name == NAME

    def read(self, query: str) -> str:
        """Return the memories for a query as text, each with its source.

        Raises:
            NexusError: The memories cannot be read.
        """
        found = self._nexus.recall(query, session=self._session, limit=MAX_RECALLED)
        answers = [format_memory(memory) for memory in found.memories]
        return "\n\n".join(answers) or "Nothing found. Other words may find something."

    def run(self, call: RecordedCall) -> CallResult:
        """Return the result of a tool call, an error result if it is invalid."""
        query = None if call.has_invalid_arguments else call.arguments.get("query")
        if call.name != NAME or not isinstance(query, str):
            return call.result(f"call {NAME} with a query", is_error=True)
        try:
            return call.result(self.read(query))
        except NexusError as error:
            return call.result(str(error), is_error=True)
