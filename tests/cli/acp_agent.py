"""An agent of the official package: it thinks, reads a file, answers, and reports its usage."""

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp.schema import Usage


class SampleAgent:
    """Repeats what it is asked, after a tool call."""

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:  # noqa: ARG002 - the protocol's
        return acp.NewSessionResponse(session_id="4f9a8b7c-0000-4000-8000-000000000001")

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> acp.PromptResponse:
        say = self._client.session_update
        await say(session_id, acp.update_agent_thought_text("Hm."))
        await say(session_id, acp.update_agent_message_text("Let me "))
        await say(session_id, acp.update_agent_message_text("look."))
        await say(session_id, acp.start_tool_call("c1", "read_file", raw_input={"path": "a.txt"}))
        content = [acp.tool_content(acp.text_block("It has one line."))]
        await say(session_id, acp.update_tool_call("c1", status="completed", content=content))
        await say(session_id, acp.update_agent_message_text(f"You asked: {prompt[0].text}"))
        usage = Usage(total_tokens=130, input_tokens=20, output_tokens=10, cached_read_tokens=100)
        return acp.PromptResponse(stop_reason="end_turn", usage=usage)

    async def cancel(self, session_id: str, **_: Any) -> None:
        pass


if __name__ == "__main__":
    asyncio.run(acp.run_agent(SampleAgent()))  # type: ignore[arg-type]  # it has what the tests use
