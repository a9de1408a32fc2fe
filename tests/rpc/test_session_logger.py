"""A log beside the ledger: a transcript for people, and each model call as it was sent and answered."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Message, ProviderError
from nexus_core.context import ContextManager, ToolCall
from nexus_core.rpc import AgentPool, SessionLogger, SharedComponents
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied
from tests.rpc.models import ScriptedModel


def work() -> str:
    """Work."""
    return "```\nworked\n```"


@pytest.mark.acceptance("V-09")
def test_a_pool_logs_prompt_messages_and_raw_calls_of_each_agent(make_nexus: MakeNexus, tmp_path: Path) -> None:
    logs = tmp_path / "logs"

    def says(context: Any) -> Any:
        return replied("Done.") if context.progress else called("work", {}, "Let me see.")

    async def main() -> None:
        nexus = make_nexus({"NEXUS.md": "Be brief.\n"})
        shared = SharedComponents(nexus=nexus, provider=ScriptedModel(says).provider, base_log_dir=logs)
        async with AgentPool(shared) as pool:
            await (await pool.create("a", tools=[work])).answer("Go.")
            await pool.create("idle")

    asyncio.run(main())

    transcript = (logs / "a/transcript.md").read_text()
    positions = [transcript.index(each) for each in ("Be brief.", "Go.", "Let me see.", "**work**", "worked", "Done.")]
    assert positions == sorted(positions)
    assert "````\n```\nworked\n```\n````" in transcript  # the tool's fence does not end ours
    first, second = (json.loads(line) for line in (logs / "a/calls.jsonl").read_text().splitlines())
    assert first["response"] == {"said": ["Let me see."]}
    assert "Be brief." in json.dumps(first["request"])
    assert len(second["request"]["messages"]) == len(first["request"]["messages"]) + 2
    assert not (logs / "idle").exists()
    assert [stat.S_IMODE(each.stat().st_mode) for each in (logs / "a", logs / "a/calls.jsonl")] == [0o700, 0o600]


@pytest.mark.acceptance("V-09")
def test_a_context_manager_takes_it(tmp_path: Path) -> None:
    context = ContextManager(logger=SessionLogger(tmp_path))

    context.set_system_prompt("You are helpful.")
    context.add_user_message("Hello!")
    context.add_assistant_message("", [ToolCall("c1", "look", {"path": "x"})])
    context.add_tool_result("c1", "look", "seen")

    text = (tmp_path / "transcript.md").read_text()
    assert [each in text for each in ("You are helpful.", "Hello!", "**look** `c1`", "seen")] == [True] * 4


def test_a_call_that_failed_is_in_the_log(make_nexus: MakeNexus, tmp_path: Path) -> None:
    async def main() -> None:
        model = FakeModel(ProviderError("no power"))
        shared = SharedComponents(nexus=make_nexus(), provider=model.provider, base_log_dir=tmp_path / "logs")
        async with AgentPool(shared) as pool:
            with pytest.raises(ProviderError):
                await (await pool.create("a")).answer("Go.")

    asyncio.run(main())

    (call,) = map(json.loads, (tmp_path / "logs/a/calls.jsonl").read_text().splitlines())
    assert (call["error"], "response" in call) == ("ProviderError: no power", False)


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "..", "x" * 300, "é\u202e", "."])
def test_an_id_never_leaves_the_directory_of_the_logs(tmp_path: Path, name: str) -> None:
    SessionLogger(tmp_path / "logs", name).log_message(Message("user", "Hi."))

    (directory,) = (tmp_path / "logs").iterdir()
    assert (directory / "transcript.md").is_file()
    assert [each.name for each in tmp_path.iterdir()] == ["logs"]


def test_two_ids_never_share_a_log(tmp_path: Path) -> None:
    names = ["a/b", "a_b", "a b", "a?b", "x" * 300, "x" * 301]

    assert len({SessionLogger(tmp_path, name).directory for name in names}) == len(names)


def test_a_log_that_cannot_be_written_stops_nothing(
    make_nexus: MakeNexus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/a").write_text("a file in place of the directory")

    async def main() -> str:
        model = FakeModel(replied("Hello."))
        shared = SharedComponents(nexus=make_nexus(), provider=model.provider, base_log_dir=tmp_path / "logs")
        async with AgentPool(shared) as pool:
            return await (await pool.create("a")).answer("Go.")

    assert asyncio.run(main()) == "Hello."
    assert [each.message.partition(":")[0] for each in caplog.records].count(
        f"the log {tmp_path / 'logs/a/transcript.md'} cannot be written"
    ) == 1


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "target").write_text("")
    (tmp_path / "a/transcript.md").symlink_to(tmp_path / "target")

    SessionLogger(tmp_path, "a").log_message(Message("user", "Hi."))

    assert (tmp_path / "target").read_text() == ""
