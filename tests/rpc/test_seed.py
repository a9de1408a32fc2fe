"""The example of many agents in the founding documents, with only the import path changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nexus_core.context import Config, PromptLoader
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import replied
from tests.rpc.models import ScriptedModel

EXAMPLE = """
from nexus_core.rpc.pool import AgentPool, SharedComponents, AgentConfig

async def main():
    # Create shared components
    shared = SharedComponents(
        config=config,
        provider=provider,
        prompt_loader=PromptLoader(),
        base_log_dir=Path(".nexus3/logs"),
    )
    pool = AgentPool(shared)

    # Create agent (gets its own ContextManager)
    agent = await pool.create(agent_id="worker-1")

    # Access agent's context
    usage = agent.context.get_token_usage()
    messages = agent.context.messages  # Read-only copy

    # Create agent with custom system prompt
    custom_agent = await pool.create(
        config=AgentConfig(
            agent_id="custom-worker",
            system_prompt="You are a specialized assistant.",
        )
    )
    return pool, agent, usage, messages, custom_agent
"""


@pytest.mark.acceptance("V-10")
def test_the_example_runs(make_nexus: MakeNexus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_nexus({"NEXUS.md": "Be brief.\n"})  # a directory with instructions
    monkeypatch.chdir(tmp_path / "work")
    model = ScriptedModel(lambda _context: replied("Hello."))
    names = {"config": Config(), "provider": model.provider, "PromptLoader": PromptLoader, "Path": Path}
    exec(EXAMPLE, names)  # noqa: S102 - the text above

    async def main() -> None:
        pool, agent, usage, messages, custom = await names["main"]()  # type: ignore[operator]
        async with pool:
            assert {"system", "tools", "messages", "total", "budget", "available"} == set(usage)
            assert usage["total"] == usage["system"] > 0
            assert messages == []
            assert agent.context.system_prompt == PromptLoader().load(is_repl=False).content
            assert custom.context.system_prompt == "You are a specialized assistant."
            assert await agent.answer("Hi.") == "Hello."
            assert [each.role for each in agent.context.messages][-2:] == ["user", "assistant"]
            assert custom.context.messages == []
        transcript = (tmp_path / "work/.nexus3/logs/worker-1/transcript.md").read_text()
        assert "Be brief." in transcript
        assert "Hello." in transcript

    asyncio.run(main())
