"""Transcripts of real agents, in the folder that NEXUS_CORPUS names; skipped where there is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core.dialects.registry import BUILT_IN_DIALECTS, get_dialect, read_messages
from tests.conftest import CORPUS

CODEX = sorted(CORPUS.glob("**/codex/*.jsonl"))
CLAUDE = sorted(CORPUS.glob("**/claude-code/real/**/*.jsonl"))
CHAT = sorted(CORPUS.glob("**/openai-chat/*.json"))

pytestmark = pytest.mark.skipif(not (CODEX or CHAT or CLAUDE), reason="NEXUS_CORPUS names no folder of transcripts")


def codex_items(file: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    items = [line["payload"] for line in lines if line.get("type") == "response_item"]
    # Somebody shortened some of these files for their own tests, and left arguments out.
    return [{"arguments": "{}"} | item if item.get("type") == "function_call" else item for item in items]


def chat_messages(file: Path) -> list[dict[str, Any]]:
    history = json.loads(file.read_text(encoding="utf-8"))["history"]
    # This agent notes the ids of results in a list of its own.
    return [
        message | {"tool_call_id": ids[0]} if (ids := message.get("tool_call_ids")) else message for message in history
    ]


@pytest.mark.parametrize("file", CODEX, ids=lambda file: file.stem)
def test_what_codex_sent_comes_back_and_crosses_to_chat(file: Path) -> None:
    items = codex_items(file)
    messages = read_messages(get_dialect("responses"), items)

    assert BUILT_IN_DIALECTS.recognise(items).name == "responses"
    assert get_dialect("responses").write(messages) == items
    assert sum(len(message.get("tool_calls", ())) for message in get_dialect("openai").write(messages)) == sum(
        len(message.tool_calls) for message in messages
    )


@pytest.mark.parametrize("file", CHAT, ids=lambda file: file.stem)
def test_what_an_agent_sent_to_chat_comes_back_and_crosses_to_responses(file: Path) -> None:
    given = chat_messages(file)
    messages = read_messages(get_dialect("openai"), given)

    assert BUILT_IN_DIALECTS.recognise(given).name == "openai"
    assert get_dialect("openai").write(messages) == given
    items = get_dialect("responses").write(messages)
    assert [item["call_id"] for item in items if item.get("type") == "function_call"] == [
        call.id for message in messages for call in message.tool_calls
    ]


@pytest.mark.parametrize("file", CLAUDE, ids=lambda file: file.stem)
def test_what_claude_code_sent_comes_back(file: Path) -> None:
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    messages = [record["message"] for record in records if "message" in record]

    written = [get_dialect("anthropic").write([get_dialect("anthropic").read(message)]) for message in messages]

    assert written == [[{"role": message["role"], "content": message["content"]}] for message in messages]
