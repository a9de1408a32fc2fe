"""Responses: items, requests, replies and streams."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.responses import ResponseInputItemParam, ResponseOutputMessage, ResponseReasoningItem, ToolParam
from pydantic import BaseModel

from nexus_core.dialects.responses import DIALECT
from nexus_core.types.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.dialects.support import (
    JSON,
    OBJECTS,
    TEXTS,
    WORDS,
    Loopback,
    StrictType,
    accepted,
    attempted,
    spoiled,
    values_of,
)

ITEMS = StrictType(list[ResponseInputItemParam])
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


TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "ls", "description": "List.", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
    {"type": "web_search", "search_context_size": "low"},
    {"type": "mcp", "server_label": "s", "server_url": "https://a"},
]
REQUEST: dict[str, Any] = {
    "model": "gpt-5",
    "instructions": "Be brief.",
    "input": list(VALID.values()),
    "tools": TOOLS,
    "reasoning": {"effort": "low"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
}


def test_a_request_comes_back_as_it_was() -> None:
    conversation = DIALECT.read_request(REQUEST)

    assert conversation.messages[0].role == "system"
    assert conversation.messages[0].content == "Be brief."
    assert len(conversation.messages) == 1 + len(VALID)
    assert [tool.name for tool in conversation.tools] == ["ls", "sql", "web_search", "s"]
    assert DIALECT.write_request(conversation) == REQUEST


@pytest.mark.parametrize(
    "request_body",
    [
        {"model": "m", "input": "hello"},
        {"model": "m", "input": "hello", "instructions": None},
        {"model": "m", "input": "", "instructions": ""},
        {"model": "m", "input": []},
        {"model": "m", "input": [VALID["an easy message"]], "tools": []},
        {"model": "m", "prompt": {"id": "pmpt_1"}},
        {"model": "m", "input": None, "previous_response_id": "resp_1"},
        {"model": "m", "instructions": "Be brief.", "previous_response_id": "resp_1"},
        {"model": "m", "input": [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]},
    ],
)
def test_every_spelling_of_a_request_comes_back(request_body: dict[str, Any]) -> None:
    assert DIALECT.write_request(DIALECT.read_request(request_body)) == request_body


@settings(deadline=None)
@given(
    st.lists(values_of(ResponseInputItemParam), max_size=2),
    st.lists(values_of(ToolParam), min_size=1, max_size=2),
    st.none() | st.text(max_size=3),
)
def test_whatever_the_sdk_allows_comes_back(items: list[Any], tools: list[Any], instructions: str | None) -> None:
    request = {"model": "m", "input": items, "tools": tools, "instructions": instructions}

    assert DIALECT.write_request(DIALECT.read_request(request)) == request


def test_the_client_sends_what_was_written(loopback: Loopback) -> None:
    loopback.answer = response([VALID["an answer"]])

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        api.responses.create(**DIALECT.write_request(DIALECT.read_request(REQUEST)))

    assert loopback.paths == ["/responses"]
    assert loopback.body == REQUEST


def test_an_answer_goes_back_to_the_client_as_it_came(loopback: Loopback) -> None:
    output = [VALID["a thought"], VALID["a call"]]
    loopback.answer = response(output)
    asked = DIALECT.read_request({"model": "m", "input": "hello"})

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        reply = DIALECT.read_reply(api.responses.create(**DIALECT.write_request(asked)))
        result = Message("tool", (ToolResult("call_1", "a.txt"),))
        again = Conversation(messages=(*asked.messages, *reply.messages, result), api="responses", extra=asked.extra)
        api.responses.create(**DIALECT.write_request(again))

    hello = {"type": "message", "role": "user", "content": "hello"}
    assert loopback.bodies[1] == {"model": "m", "input": [hello, *output, VALID["a result"]]}


def test_what_was_changed_is_no_text_any_more() -> None:
    asked = DIALECT.read_request({"model": "m", "input": "hello"})
    more = Conversation(messages=(*asked.messages, Message("user", "and?")), api="responses", extra=asked.extra)

    assert [item["content"] for item in DIALECT.write_request(more)["input"]] == ["hello", "and?"]


def test_the_first_system_message_of_others_becomes_the_instructions() -> None:
    made = Conversation(messages=(Message("system", "Be brief."), Message("system", "Really."), Message("user", "x")))

    assert DIALECT.write_request(made) == {
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "system", "content": "Really."},
            {"type": "message", "role": "user", "content": "x"},
        ],
    }


def test_instructions_in_several_parts_stay_among_the_items() -> None:
    made = Conversation(messages=(Message("system", (Text("a"), Text("b"))),))

    assert DIALECT.write_request(made) == {
        "input": [
            {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
            }
        ]
    }


BAD_REQUESTS: list[tuple[object, str]] = [
    ({"input": 3}, "input"),
    ({"input": ["hello"]}, "input[0]"),
    ({"input": [VALID["a call"], {"type": "message", "role": "user"}]}, "input[1].content"),
    ({"input": "x", "instructions": 3}, "instructions"),
    ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
    ("hello", ""),
]

OUTPUT = [VALID["a thought"], VALID["a search"], VALID["an answer"], VALID["a call"]]
USAGE = {
    "input_tokens": 100,
    "output_tokens": 20,
    "total_tokens": 120,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
    "output_tokens_details": {"reasoning_tokens": 5},
}
SPENT = Usage(input_tokens=100, output_tokens=20, cached_input_tokens=64, cache_write_tokens=8, reasoning_tokens=5)
REPLY_MESSAGE = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": []}


def response(output: list[dict[str, Any]], status: str = "completed", **fields: object) -> dict[str, Any]:
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "status": status}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None}
    return {**head, **rest, "output": output, "usage": USAGE, **fields}


def events(*output: dict[str, Any], final: str = "completed", **fields: object) -> list[dict[str, Any]]:
    begun = response([], "in_progress", usage=None)
    listed: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(output):
        listed.append({"type": "response.output_item.added", "output_index": place, "item": item})
        listed.append({"type": "response.output_item.done", "output_index": place, "item": item})
    if final:
        listed.append({"type": f"response.{final}", "response": response(list(output), final, **fields)})
    return [event | {"sequence_number": number} for number, event in enumerate(listed)]


def test_a_reply_says_who_why_and_what_it_cost() -> None:
    reply = DIALECT.read_reply(response(OUTPUT))

    assert (reply.id, reply.model, reply.api) == ("resp_1", "gpt-5", "responses")
    assert (reply.stop, reply.stop_reason, reply.usage) == ("tools", "completed", SPENT)
    assert len(reply.messages) == len(OUTPUT)
    assert DIALECT.write(reply.messages) == OUTPUT


@pytest.mark.parametrize(
    ("reply", "stop", "reason"),
    [
        (response([REPLY_MESSAGE]), "end", "completed"),
        (response([REPLY_MESSAGE | {"content": [{"type": "refusal", "refusal": "no"}]}]), "refusal", "completed"),
        (response([VALID["a custom call"]]), "tools", "completed"),
        (response([VALID["a shell"]]), "tools", "completed"),
        (response([VALID["a shell"], VALID["a shell's output"], REPLY_MESSAGE]), "end", "completed"),
        (response([VALID["a request for approval"]]), "tools", "completed"),
        (response([], "incomplete", incomplete_details={"reason": "max_output_tokens"}), "length", "max_output_tokens"),
        (response([], "incomplete", incomplete_details={"reason": "content_filter"}), "refusal", "content_filter"),
        (response([], "failed", error={"code": "server_error", "message": "x"}), "error", "server_error"),
        (response([], "cancelled"), "error", "cancelled"),
        (response([], "queued"), "pause", "queued"),
        ({"output": []}, "", ""),
    ],
)
def test_why_it_ended_has_one_word_for_all_apis(reply: dict[str, Any], stop: str, reason: str) -> None:
    read = DIALECT.read_reply(reply)

    assert (read.stop, read.stop_reason) == (stop, reason)


def test_the_sdks_object_is_read_like_its_dict(loopback: Loopback) -> None:
    loopback.answer = response(OUTPUT)

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        made = api.responses.create(model="gpt-5", input="x")

    assert DIALECT.read_reply(made) == DIALECT.read_reply(loopback.answer)
    assert DIALECT.write(DIALECT.read_reply(made).messages) == OUTPUT


def test_what_the_sdk_parsed_is_not_part_of_the_items(loopback: Loopback) -> None:
    class Answer(BaseModel):
        number: int

    said = {"type": "output_text", "text": '{"number": 4}', "annotations": []}
    loopback.answer = response([REPLY_MESSAGE | {"content": [said]}, VALID["a call"]])

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        made = api.responses.parse(model="gpt-5", input="x", text_format=Answer)

    assert made.output_parsed == Answer(number=4)
    assert DIALECT.write(DIALECT.read_reply(made).messages) == loopback.answer["output"]


@pytest.mark.parametrize(
    ("final", "fields", "stop"),
    [
        ("completed", {}, "tools"),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ("failed", {"error": {"code": "server_error", "message": "x"}}, "error"),
    ],
)
def test_the_final_event_of_a_stream_is_the_reply(final: str, fields: dict[str, Any], stop: str) -> None:
    reply = DIALECT.read_reply(events(*OUTPUT, final=final, **fields))

    assert (reply.stop, reply.usage, reply.id) == (stop, SPENT, "resp_1")
    assert DIALECT.write(reply.messages) == OUTPUT


def test_events_from_the_sdk_are_read_like_dicts(loopback: Loopback) -> None:
    listed = events(*OUTPUT)
    loopback.answer = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in listed)

    with OpenAI(base_url=loopback.url, api_key="none", max_retries=0) as api:
        heard = list(api.responses.create(model="gpt-5", input="x", stream=True))

    assert DIALECT.read_reply(heard) == DIALECT.read_reply(listed)


def test_a_final_event_that_leaves_the_output_out_is_filled_up() -> None:
    listed = events(*OUTPUT)
    listed[-1]["response"]["output"] = []

    assert DIALECT.write(DIALECT.read_reply(listed).messages) == OUTPUT


def test_of_a_stream_that_broke_off_there_is_what_had_come() -> None:
    reply = DIALECT.read_reply(events(*OUTPUT[:2], final=""))

    assert (reply.stop, reply.stop_reason, reply.id, reply.usage) == ("broken", "", "resp_1", None)
    assert DIALECT.write(reply.messages) == OUTPUT[:2]


def test_so_there_is_of_an_item_that_was_not_finished() -> None:
    message = {"type": "message", "id": "msg_2", "role": "assistant", "status": "in_progress", "content": []}
    call = {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "rm", "arguments": ""}
    begun = [
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Ha"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "lf"},
        {"type": "response.output_item.added", "output_index": 2, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"path": "/tm'},
        {"type": "response.output_item.added", "output_index": 3, "item": {"type": "reasoning", "id": "rs_2"}},
    ]

    reply = DIALECT.read_reply([*events(OUTPUT[0], final=""), *begun])

    assert reply.stop == "broken"
    assert reply.messages[1].content == "Half"
    assert reply.messages[2].tool_calls[0].raw == '{"path": "/tm'
    assert len(reply.messages) == 3


def test_an_error_in_a_stream_is_the_reason_it_ended() -> None:
    error = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}

    reply = DIALECT.read_reply([*events(OUTPUT[0], final=""), error])

    assert (reply.stop, reply.stop_reason) == ("error", "rate_limit_exceeded")
    assert DIALECT.write(reply.messages) == OUTPUT[:1]


BAD_REPLIES: list[tuple[object, str]] = [
    ({}, "output"),
    ({"error": {"message": "overloaded"}}, "error"),
    ([], ""),
    ([{"type": "response.output_text.delta", "delta": "x"}], ""),
    ([3], "[0]"),
    (response([{"type": "message"}]), "output[0].role"),
    (response([], usage={"input_tokens": 1.5}), "usage.input_tokens"),
    (3, ""),
]


@settings(deadline=None)
@given(
    JSON
    | OBJECTS
    | spoiled(st.builds(lambda: json.loads(json.dumps(response(OUTPUT)))))
    | spoiled(st.builds(lambda: json.loads(json.dumps(events(*OUTPUT)))))
)
def test_reading_a_reply_refuses_or_understands_and_never_breaks(reply: Any) -> None:
    read = attempted(DIALECT.read_reply, reply)

    assert read is None or len(DIALECT.write(read.messages)) == len(read.messages)
