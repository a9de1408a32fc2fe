"""Items of Responses: read, written back, and refused."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam, ResponseOutputMessage, ResponseReasoningItem

from nexus_core.dialects.responses.dialect import DIALECT
from nexus_core.values.message import Message
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.dialects.support import TEXTS, WORDS, accepted, strictly

ITEMS = strictly(list[ResponseInputItemParam])
UNHURRIED = settings(deadline=None)
PICTURE = "data:image/png;base64,iVBORw0KGgo="
SAID = {"type": "output_text", "text": "hi", "annotations": [{"type": "file_path", "file_id": "f", "index": 0}]}
CALL = {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": '{"path": "."}'}
VALID: dict[str, dict[str, Any]] = {
    "an easy message": {"role": "user", "content": "hello"},
    "an easy message with a type": {"type": "message", "role": "developer", "content": "Be brief."},
    "an easy answer": {"role": "assistant", "content": "hi", "phase": "final_answer"},
    "a message in parts": {
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "detail": "low", "image_url": PICTURE, "file_id": None},
            {"type": "input_image", "detail": "auto", "file_id": "file-1"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            {"type": "input_file", "file_url": "https://a/b.pdf"},
        ],
    },
    "an answer": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [SAID, {"type": "refusal", "refusal": "no"}],
    },
    "a call": CALL | {"id": "fc_1", "status": "completed"},
    "a result": {"type": "function_call_output", "call_id": "call_1", "output": "a.txt"},
    "a result in parts": {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PICTURE}],
    },
    "a custom call": {"type": "custom_tool_call", "call_id": "call_2", "name": "sql", "input": "select 1", "id": "ct"},
    "a custom result": {"type": "custom_tool_call_output", "call_id": "call_2", "output": "1"},
    "a thought": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "content": [{"type": "reasoning_text", "text": "let me see"}],
        "encrypted_content": "AAAA",
    },
    "a sealed thought": {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": None},
    "a reference": {"type": "item_reference", "id": "msg_1"},
    "a reference by its id": {"id": "msg_1"},
    "a search": {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    },
    "a search of files": {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["x"]},
    "code": {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "1",
        "container_id": "c",
        "outputs": None,
    },
    "an MCP server's tools": {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    "an MCP call": {"type": "mcp_call", "id": "mcp_1", "name": "f", "arguments": "{}", "server_label": "s"},
    "a request for approval": {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "f",
        "arguments": "{}",
        "server_label": "s",
    },
    "an approval": {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    "a local shell": {
        "type": "local_shell_call",
        "id": "ls_1",
        "call_id": "call_3",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    "a local shell's output": {"type": "local_shell_call_output", "id": "call_3", "output": "{}"},
    "a shell": {"type": "shell_call", "call_id": "call_4", "action": {"commands": ["ls"]}},
    "a shell's output": {
        "type": "shell_call_output",
        "call_id": "call_4",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "a patch": {
        "type": "apply_patch_call",
        "call_id": "call_5",
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a"},
    },
    "a patch's output": {"type": "apply_patch_call_output", "call_id": "call_5", "status": "completed"},
    "a click": {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_6",
        "status": "completed",
        "pending_safety_checks": [],
        "action": {"type": "click", "button": "left", "x": 1, "y": 2},
    },
    "a screenshot": {
        "type": "computer_call_output",
        "call_id": "call_6",
        "output": {"type": "computer_screenshot", "image_url": PICTURE},
    },
    "a compaction": {"type": "compaction", "encrypted_content": "AAAA", "id": "cmp_1"},
    "tools on the way": {"type": "additional_tools", "role": "developer", "tools": []},
}
BEYOND: dict[str, dict[str, Any]] = {
    "a type nobody knows": {"type": "hologram_call", "id": "h_1", "light": [1, 2]},
    "an item that says null": {"type": None, "role": "user", "content": "x"},
    "a reference that says null": {"type": None, "id": "msg_1"},
    "an answer in parts without an id": {"role": "assistant", "content": [SAID]},
    "text by another name": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}]},
    "sound": {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}]},
    "no content": {"role": "user", "content": None},
    "a result to nothing": {"type": "function_call_output", "output": "x", "name": "ls"},
    "a part nobody knows": {"role": "user", "content": [{"type": "input_video", "video": "u"}]},
    "fields that look like notes": {"role": "user", "content": "x", "_content": 1},
    "a file that is no base64": {"role": "user", "content": [{"type": "input_file", "file_data": "data:,hello"}]},
}
BAD: list[tuple[object, str, str]] = [
    ("hello", "", "expected an object, not the text 'hello'"),
    ({}, "type", "there is no 'type'"),
    ({"type": 3}, "type", "expected text, not the number 3"),
    ({"type": "message"}, "role", "there is no 'role'"),
    ({"role": "tool", "content": "x"}, "role", "unknown role 'tool'"),
    ({"role": "user"}, "content", "there is no 'content'"),
    ({"role": "user", "content": 3}, "content", "expected text or a list of parts, not the number 3"),
    ({"role": "user", "content": [{"text": "x"}]}, "content[0].type", "there is no 'type'"),
    ({"role": "user", "content": [{"type": "input_text"}]}, "content[0].text", "there is no 'text'"),
    ({"type": "function_call", "name": "f", "arguments": ""}, "call_id", "there is no 'call_id'"),
    (CALL | {"arguments": 1}, "arguments", "expected JSON in a text, not the number 1"),
    ({"type": "function_call_output", "call_id": "c"}, "output", "there is no 'output'"),
    (
        {"type": "function_call_output", "call_id": "c", "output": [{"x": 1}]},
        "output[0].type",
        "there is no 'type'",
    ),
    ({"type": "reasoning", "summary": "x"}, "summary", "expected a list, not the text 'x'"),
]


def test_an_sdk_object_is_read_like_its_dict() -> None:
    answer = ResponseOutputMessage.model_validate(VALID["an answer"])
    thought = ResponseReasoningItem.model_validate(VALID["a thought"])

    assert DIALECT.write(map(DIALECT.read, (answer, thought))) == [VALID["an answer"], VALID["a thought"]]


def test_a_call_a_result_and_a_thought_are_messages() -> None:
    call, result, thought = (DIALECT.read(VALID[name]) for name in ("a call", "a result", "a thought"))

    assert (call.role, call.tool_calls[0].arguments) == ("assistant", {"path": "."})
    assert call.tool_calls[0].extra == {"id": "fc_1", "status": "completed"}
    assert (result.role, result.tool_results[0].call_id, result.tool_results[0].text) == ("tool", "call_1", "a.txt")
    (part,) = thought.parts
    assert isinstance(part, Reasoning)
    assert (thought.role, part.text, part.encrypted, part.api) == ("assistant", "hm\n\nlet me see", "AAAA", "responses")


def test_pictures_and_files_are_read() -> None:
    assert DIALECT.read(VALID["a message in parts"]).parts[1:] == (
        Image(mime="image/png", data="iVBORw0KGgo=", detail="low", extra={"file_id": None}),
        Image(detail="auto", file_id="file-1"),
        File(name="a.pdf", mime="application/pdf", data="JVBERi0="),
        File(url="https://a/b.pdf"),
    )


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("a search", "assistant"),
        ("code", "assistant"),
        ("an MCP call", "assistant"),
        ("a compaction", "assistant"),
        ("an approval", "user"),
        ("a reference", "user"),
        ("tools on the way", "system"),
    ],
)
def test_what_nexus_has_no_word_for_is_opaque(name: str, role: str) -> None:
    message = DIALECT.read(VALID[name])

    assert (message.role, message.parts) == (role, (Opaque("responses", VALID[name]),))


@pytest.mark.parametrize(
    ("called", "answered"),
    [
        ("a local shell", "a local shell's output"),
        ("a shell", "a shell's output"),
        ("a patch", "a patch's output"),
        ("a click", "a screenshot"),
        ("a custom call", "a custom result"),
    ],
)
def test_calls_that_the_client_runs_belong_to_their_outputs(called: str, answered: str) -> None:
    call, result = DIALECT.read(VALID[called]), DIALECT.read(VALID[answered])

    assert (call.role, result.role) == ("assistant", "tool")
    assert call.tool_calls[0].id == result.tool_results[0].call_id


@pytest.mark.parametrize("name", ["a call", "a custom call", "a local shell", "a shell", "a patch"])
def test_a_result_made_here_has_the_type_its_call_wants(name: str) -> None:
    call = DIALECT.read(VALID[name])
    result = ToolResult(call.tool_calls[0].id, "interrupted", is_error=True)

    items = DIALECT.write([call, Message("tool", (result,))])

    accepted(ITEMS, items)
    assert items[1]["type"].removesuffix("_output") == VALID[name]["type"]
    assert "interrupted" in json.dumps(items[1])


def test_the_parts_of_an_answer_keep_their_order() -> None:
    foreign = Message("assistant", (Text("a"), ToolCall("1", "ls"), Text("b"), Text("c")), api="anthropic")

    items = DIALECT.write([foreign])

    accepted(ITEMS, items)
    assert [item.get("content", item["type"]) for item in items] == ["a", "function_call", "b", "c"]


def test_pictures_in_results_stay_where_they_are() -> None:
    seen = Image(mime="image/png", data="iVBORw0KGgo=")
    foreign = Message("tool", (ToolResult("a", (Text("done"), seen)),), api="anthropic")

    (item,) = DIALECT.write([foreign])

    accepted(ITEMS, [item])
    assert item["output"] == [
        {"type": "input_text", "text": "done"},
        {"type": "input_image", "detail": "auto", "image_url": PICTURE},
    ]


def test_sound_is_named_where_it_cannot_be_heard() -> None:
    foreign = Message("user", (File(mime="audio/wav", data="UklG"),), api="openai")

    assert DIALECT.write([foreign])[0]["content"] == "[file not shown here: audio/wav]"


@pytest.mark.parametrize("part", [Opaque("anthropic", {"type": "x"}), Reasoning(text="hm", api="anthropic")])
def test_anothers_blocks_are_left_out(part: Opaque | Reasoning) -> None:
    assert DIALECT.write([Message("assistant", (part,), api="anthropic")]) == []


@UNHURRIED
@given(st.lists(st.tuples(WORDS, TEXTS), min_size=1, max_size=4))
def test_what_is_made_here_is_valid(calls: list[tuple[str, str]]) -> None:
    made = [
        Message("system", "Be brief."),
        Message("user", (Text("a"), Image(url="https://a/b.png"), File(mime="application/pdf", data="AA"))),
        Message("assistant", (Text("b"), *(ToolCall(name, name, {"x": text}) for name, text in calls))),
        Message("tool", tuple(ToolResult(name, text) for name, text in calls)),
    ]

    accepted(ITEMS, DIALECT.write(made))
