"""`check` is `repair` without the result, and its codes are described."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

import nexus_core
from nexus_core.dialects.calls import INVALID_JSON_ARGUMENT
from nexus_core.dialects.rules import RULES_BY_API
from nexus_core.errors import MessageError
from nexus_core.history.repair import check_messages, repair_messages
from nexus_core.history.repair.findings import FINDING_CODES
from nexus_core.history.repair.order import BEGINNING_TEXT, CONTINUE_TEXT
from nexus_core.history.repair.pairing import NO_RESULT_TEXT
from nexus_core.history.repair.rules import REPAIR_RULES
from nexus_core.types.messages import Message
from tests.conftest import ROOT

PAGE = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8")
APIS = [name for name in RULES_BY_API if name != "neutral"]


def apis_of(code: str) -> str:
    names = [name for name in APIS if FINDING_CODES[code].applies(RULES_BY_API[name])]
    return "all" if names == APIS else ", ".join(names)


def test_the_reference_lists_every_code_with_cause_repair_and_apis() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)

    assert rows == [(code.code, code.cause, code.repair, apis_of(code.code)) for code in FINDING_CODES.values()]


@pytest.mark.parametrize("words", [NO_RESULT_TEXT, BEGINNING_TEXT, CONTINUE_TEXT, INVALID_JSON_ARGUMENT])
def test_the_reference_quotes_what_repair_says(words: str) -> None:
    assert words in PAGE


def test_every_code_belongs_to_a_step_and_every_api_has_some() -> None:
    assert {code for step in REPAIR_RULES for code in step.codes} == set(FINDING_CODES)
    assert all(any(code.applies(rules) for code in FINDING_CODES.values()) for rules in RULES_BY_API.values())


def test_codes_are_words_with_hyphens() -> None:
    assert [code for code in FINDING_CODES if not re.fullmatch(r"[a-z]+(-[a-z]+)+", code)] == []


def test_check_returns_the_findings_and_changes_nothing() -> None:
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": "hi\0"}]

    found = check_messages(messages, "anthropic")

    assert [finding.code for finding in found] == ["nul-character", "wrong-first-role"]
    assert messages == [{"role": "assistant", "content": "hi\0"}]


def test_both_are_public() -> None:
    assert (nexus_core.check_messages, nexus_core.repair_messages, nexus_core.Message) == (
        check_messages,
        repair_messages,
        Message,
    )


def test_a_generator_is_as_good_as_a_list() -> None:
    assert check_messages({"role": "user", "content": text} for text in ("a", "b")) == ()


def test_what_an_sdk_returned_can_be_given_back() -> None:
    from openai.types.chat import ChatCompletionMessage

    reply = ChatCompletionMessage(role="assistant", content="so")
    messages = [{"role": "user", "content": "hi"}, reply, {"role": "tool", "tool_call_id": "a", "content": "x"}]

    repaired = repair_messages(messages)

    assert [finding.code for finding in repaired.findings] == ["orphan-result"]
    assert repaired.messages[1] is reply


def test_an_object_of_an_sdk_with_a_fault_becomes_a_dict() -> None:
    from anthropic.types import Message as Reply
    from anthropic.types import TextBlock, Usage

    content = [TextBlock(type="text", text="so\0")]
    usage = Usage(input_tokens=1, output_tokens=1)
    reply = Reply(id="m", type="message", role="assistant", model="m", content=content, usage=usage)  # type: ignore[arg-type] # a list of one kind

    repaired = repair_messages([{"role": "user", "content": "hi"}, reply], "anthropic")

    assert repaired.messages[1] == {"role": "assistant", "content": [{"type": "text", "text": "so"}]}


@pytest.mark.parametrize("item", [3, None, "hello", object()])
def test_what_is_no_message_is_refused_with_its_place(item: object) -> None:
    with pytest.raises(MessageError, match=r"messages\[1\]"):
        check_messages([{"role": "user", "content": "hi"}, item], "openai")


def test_checking_imports_no_sdk_and_nothing_heavy() -> None:
    code = "import sys; from nexus_core import check; check([{'role': 'tool', 'tool_call_id': 'a', 'content': 'x'}])"
    command = [sys.executable, "-c", f"{code}\nprint(*sys.modules)"]

    loaded = subprocess.run(command, text=True, capture_output=True, check=True).stdout.split()

    assert not {"openai", "anthropic", "google.genai", "pydantic", "typer", "pluggy", "asyncio"} & set(loaded)


OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("api", "tool", "words"),
    [
        ("openai", {"type": "function", "function": {"name": "a.b", "parameters": OBJECT}}, "the tool name 'a.b'"),
        ("openai", {"type": "function", "function": {"name": "n" * 65}}, "at most 64 characters"),
        (
            "openai",
            {"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}},
            "the text 'array'",
        ),
        ("responses", {"type": "function", "name": "a", "parameters": {"properties": {}}}, 'no "type": "object"'),
        ("anthropic", {"name": "a b", "input_schema": OBJECT}, "the tool name 'a b'"),
        ("anthropic", {"name": "a", "input_schema": {}}, 'no "type": "object"'),
        ("anthropic", {"name": "a", "input_schema": {"type": "string"}}, "the text 'string'"),
        ("gemini", {"functionDeclarations": [{"name": "1st"}]}, "the tool name '1st'"),
        ("gemini", {"functionDeclarations": [{"name": "a", "parameters": {"type": "STRING"}}]}, "the text 'STRING'"),
    ],
)
def test_a_tool_that_the_api_refuses_is_found(api: str, tool: dict[str, Any], words: str) -> None:
    source = {"gemini": [{"role": "user", "parts": [{"text": "hi"}]}]}
    messages = source.get(api, [{"role": "user", "content": "hi"}])

    found = check_messages(messages, api, source=api, tools=[tool])

    assert [finding.code for finding in found] == ["invalid-tool"]
    assert words in found[0].message


@pytest.mark.parametrize(
    ("api", "tool"),
    [
        ("openai", {"type": "function", "function": {"name": "a-b_1"}}),
        ("openai", {"type": "custom", "custom": {"name": "a"}}),
        ("responses", {"type": "web_search"}),
        ("anthropic", {"name": "n" * 128, "input_schema": OBJECT}),
        ("anthropic", {"type": "web_search_20250305", "name": "web_search"}),
        ("gemini", {"functionDeclarations": [{"name": "a.b:c", "parameters": {"type": "OBJECT", "properties": {}}}]}),
    ],
)
def test_a_tool_that_the_api_accepts_is_no_finding(api: str, tool: dict[str, Any]) -> None:
    messages = [{"role": "user", "parts": [{"text": "hi"}]}] if api == "gemini" else [{"role": "user", "content": "hi"}]

    assert check_messages(messages, api, source=api, tools=[tool]) == ()
