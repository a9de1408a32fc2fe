"""Each code: what provokes it, what repair makes of it, and that the API takes the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexus_core import check_messages
from nexus_core.dialects.registry import get_dialect
from nexus_core.dialects.rules import ANTHROPIC_RULES, RULES_BY_API, SILENT_ERROR_TEXT
from nexus_core.errors import MessageError, UnknownNameError
from nexus_core.history.repair import RepairResult, repair_messages
from nexus_core.history.repair.findings import FINDING_CODES
from nexus_core.history.repair.pairing import NO_RESULT_TEXT
from nexus_core.types.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from nexus_core.types.plugins import Finding
from tests.history.oracles import ORACLES

Body = dict[str, Any]


def user(text: str) -> Body:
    return {"role": "user", "content": text}


def says(text: str) -> Body:
    return {"role": "assistant", "content": text}


def calls(*ids: str, name: str = "read", arguments: str = "{}") -> Body:
    tool_calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


def result(name: str, text: str = "done") -> Body:
    return {"role": "tool", "tool_call_id": name, "content": text}


def blocks(role: str, *content: Body) -> Body:
    return {"role": role, "content": list(content)}


def text(words: str) -> Body:
    return {"type": "text", "text": words}


def use(name: str, tool: str = "read") -> Body:
    return {"type": "tool_use", "id": name, "name": tool, "input": {}}


def used(name: str, words: str = "done") -> Body:
    return {"type": "tool_result", "tool_use_id": name, "content": words}


def content(role: str, *parts: Body) -> Body:
    return {"role": role, "parts": list(parts)}


def function_call(name: str = "read") -> Body:
    return {"functionCall": {"name": name, "args": {}}}


def function_response(name: str = "read") -> Body:
    return {"functionResponse": {"name": name, "response": {"output": "done"}}}


def mend(api: str, messages: list[Any], *codes: str, source: str | None = None) -> list[Any]:
    """Repair, and insist on what is found and on a result that the API takes."""
    repaired = repair_messages(messages, api, source=source)

    assert [finding.code for finding in repaired.findings] == list(codes)
    shape = source or api
    elements = [item for item in repaired.messages if not isinstance(item, Message)]
    if shape == api and len(elements) == len(repaired.messages):
        assert ORACLES[api](elements) == []
    elif api in ORACLES:
        read = get_dialect(source).read if source else (lambda item: item)
        assert ORACLES[api](get_dialect(api).write(map(read, repaired.messages))) == []
    return repaired.messages


# ---- characters and texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("broken", "whole"), [("a\ud83d", "a�"), ("\ud83d\ude00", "😀"), ("\udc00\ud800b", "��b")])
def test_halves_of_characters_are_joined_or_replaced(broken: str, whole: str) -> None:
    messages = [user("hi"), calls("a", arguments='{"x": 1}'), result("a", broken), user(broken)]

    repaired = mend("openai", messages, "lone-surrogate", "lone-surrogate")

    assert [repaired[2]["content"], repaired[3]["content"]] == [whole, whole]


def test_half_a_character_in_arguments_is_replaced_in_keys_and_values_at_any_depth() -> None:
    messages = [
        user("hi"),
        blocks("assistant", {**use("a"), "input": {"k\ud83d": [{"deep": "v\udc00"}], "plain": 1}}),
        blocks("user", used("a")),
    ]

    repaired = mend("anthropic", messages, "lone-surrogate")

    assert repaired[1]["content"][0]["input"] == {"k�": [{"deep": "v�"}], "plain": 1}


def test_a_nul_is_taken_out_also_where_arguments_have_it_escaped() -> None:
    messages = [user("a\0b"), calls("a", arguments='{"x": "1\\u00002"}'), result("a")]

    repaired = mend("openai", messages, "nul-character", "nul-character")

    assert repaired[0]["content"] == "ab"
    assert repaired[1]["tool_calls"][0]["function"]["arguments"] == '{"x":"12"}'


@pytest.mark.parametrize("field", ["name", "newer_field"])
@pytest.mark.parametrize(
    ("broken", "whole", "code"), [("a\0b", "ab", "nul-character"), ("\ud83d\ude00", "😀", "lone-surrogate")]
)
def test_characters_are_repaired_in_the_other_fields_of_a_message(
    field: str, broken: str, whole: str, code: str
) -> None:
    repaired = repair_messages([user("hi") | {field: broken}], "neutral", source="openai")

    assert [finding.code for finding in repaired.findings] == [code]
    assert repaired.messages == [user("hi") | {field: whole}]


def test_a_sealed_thought_is_left_out_rather_than_changed() -> None:
    thought = {"type": "thinking", "thinking": "hm\0", "signature": "s"}

    repaired = mend("anthropic", [user("hi"), blocks("assistant", thought, text("so"))], "nul-character")

    assert repaired[1] == blocks("assistant", text("so"))


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_text_is_taken_out_where_the_api_refuses_it(blank: str) -> None:
    messages = [
        user("hi"),
        blocks("assistant", text(blank), use("a")),
        blocks("user", {**used("a"), "content": [text(blank)]}),
    ]

    repaired = mend("anthropic", messages, "blank-text", "blank-text")

    assert repaired[1] == blocks("assistant", use("a"))
    assert repaired[2]["content"][0]["content"] == []


def test_a_blank_text_stays_where_the_api_takes_it() -> None:
    assert mend("openai", [user(""), says("hi")]) == [user(""), says("hi")]


@pytest.mark.parametrize("silent", [{}, {"content": None}, {"content": ""}, {"content": []}, {"content": [text(" ")]}])
def test_an_error_without_words_gets_some_where_the_api_wants_them(silent: Body) -> None:
    failed = {"type": "tool_result", "tool_use_id": "a", "is_error": True, **silent}
    blank = ["blank-text"] if silent.get("content") in ("", [text(" ")]) else []

    repaired = mend(
        "anthropic", [user("hi"), blocks("assistant", use("a")), blocks("user", failed)], *blank, "silent-error"
    )

    (found,) = repaired[2]["content"]
    assert found["content"] in (SILENT_ERROR_TEXT, [text(SILENT_ERROR_TEXT)])
    assert found["is_error"]


def test_a_result_without_words_is_left_alone_where_nothing_failed() -> None:
    messages = [user("hi"), blocks("assistant", use("a")), blocks("user", {"type": "tool_result", "tool_use_id": "a"})]

    assert mend("anthropic", messages) == messages


# ---- parts ----------------------------------------------------------------------------------------------------------


def test_a_block_of_another_api_is_left_out() -> None:
    messages = [Message("user", (Text("hi"), Opaque("anthropic", {"type": "container_upload"})), api="anthropic")]

    assert mend("gemini", messages, "foreign-block")[0].parts == (Text("hi"),)


def test_a_block_of_another_api_inside_a_result_is_left_out() -> None:
    answer = ToolResult("a", (Opaque("anthropic", {"type": "search_result"}), Text("x")))
    messages = [Message("user", "hi"), Message("assistant", (ToolCall("a", "read"),)), Message("tool", (answer,))]

    assert mend("openai", messages, "foreign-block")[2].tool_results[0].parts == (Text("x"),)


def test_neutral_messages_keep_blocks_and_reasoning_of_every_api() -> None:
    parts = (Reasoning(text="hm", api="gemini"), Opaque("anthropic", {"type": "x"}), Text("hi"))
    messages = [Message("assistant", parts, api="anthropic")]

    assert mend("neutral", messages) == messages


def test_a_result_in_an_assistants_message_gets_one_of_its_own() -> None:
    messages = [user("hi"), blocks("assistant", use("a"), used("a"), text("so"))]

    repaired = mend("anthropic", messages, "misplaced-part")

    assert repaired[1:] == [blocks("assistant", use("a"), text("so")), blocks("user", used("a"))]


def test_a_call_of_the_user_is_left_out_and_words_of_a_tool_become_the_users() -> None:
    messages = [Message("user", (Text("hi"), ToolCall("a", "read"))), Message("tool", "words")]

    repaired = mend("openai", messages, "misplaced-part", "misplaced-part")

    assert [(message.role, message.content) for message in repaired] == [("user", "hi"), ("user", "words")]
    assert not repaired[0].tool_calls


def test_instructions_hold_neither_calls_nor_results() -> None:
    parts = (Text("be kind"), ToolCall("a", "read"), ToolResult("a", "x"))

    repaired = mend("openai", [Message("system", parts), Message("user", "hi")], "misplaced-part", "orphan-result")

    assert [(message.role, message.parts) for message in repaired] == [
        ("system", (Text("be kind"),)),
        ("user", (Text("hi"),)),
    ]


def test_a_picture_where_the_api_takes_none_becomes_a_note() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    messages = [user("hi"), calls("a"), {**result("a"), "content": [picture]}]

    repaired = mend("openai", messages, "misplaced-media")

    assert repaired[2]["content"] == [text("[image not shown here: https://example.com/a.png]")]


def test_a_picture_that_is_too_large_becomes_a_note() -> None:
    data = "A" * (ANTHROPIC_RULES.image_size + 1)
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    repaired = mend("anthropic", [blocks("user", picture, text("what is it?"))], "oversized-media")

    assert repaired[0]["content"] == [text("[image not shown here: image/png]"), text("what is it?")]


def test_a_document_may_be_larger_than_a_picture() -> None:
    data = "AAAA" * (ANTHROPIC_RULES.image_size // 4 + 1)
    parts = (File(name="a.pdf", mime="application/pdf", data=data), Image(mime="image/png", data="AAAA"), Text("read"))

    assert mend("anthropic", [Message("user", parts)])[0].parts == parts


PNG = "iVBORw0KGgo="


def picture(mime: str, data: str) -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


@pytest.mark.parametrize(
    ("mime", "data", "name"),
    [
        ("image/bmp", PNG, "image/bmp"),
        ("image/svg+xml", PNG, "image/svg+xml"),
        ("image/png", "[blob is missing]", "image/png"),
        ("image/png", "data:image/png;base64,iVBORw0KGgo=", "image/png"),
        ("image/png", "iVBOR", "image/png"),
        ("image/png", "日本", "image/png"),
    ],
)
def test_a_picture_that_anthropic_cannot_read_becomes_a_note(mime: str, data: str, name: str) -> None:
    asked = blocks("user", text("what is this?"), picture(mime, data))
    shown = blocks("user", {"type": "tool_result", "tool_use_id": "a", "content": [picture(mime, data)]})
    note = text(f"[image not shown here: {name}]")

    repaired = mend("anthropic", [asked, blocks("assistant", use("a")), shown], "unusable-media", "unusable-media")

    assert repaired[0] == blocks("user", text("what is this?"), note)
    assert repaired[2]["content"][0]["content"] == [note]


@pytest.mark.parametrize("url", ["data:image/bmp;base64,AAAA", "data:image/png;base64,not base64"])
def test_a_chat_picture_that_anthropic_cannot_read_becomes_the_same_note(url: str) -> None:
    asked = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    mime = url.partition(";")[0].removeprefix("data:")

    written = get_dialect("anthropic").write([get_dialect("openai").read(asked)])

    assert written == [user(f"[image not shown here: {mime}]")]


@pytest.mark.parametrize(
    ("api", "message"),
    [
        (
            "openai",
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,no!"}}]},
        ),
        (
            "openai",
            {
                "role": "user",
                "content": [
                    {"type": "file", "file": {"filename": "a", "file_data": "data:application/pdf;base64,no!"}}
                ],
            },
        ),
        (
            "responses",
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,no!"}]},
        ),
        ("gemini", {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "no!"}}]}),
        ("bedrock", {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": "no!"}}}]}),
    ],
)
def test_check_finds_media_that_is_not_base64_for_every_api(api: str, message: Body) -> None:
    assert [finding.code for finding in check_messages([message], api=api)] == ["unusable-media"]


def test_check_leaves_base64_of_gemini_with_the_alphabet_for_urls_alone() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "-_-_AA"}}

    assert check_messages([{"role": "user", "parts": [part]}], api="gemini") == ()


def test_repair_drops_tool_calls_that_are_null() -> None:
    repaired = mend("openai", [user("hi"), says("ho") | {"tool_calls": None}, user("go")], "empty-field")

    assert repaired == [user("hi"), says("ho"), user("go")]


def test_repair_gives_a_retyped_text_of_the_assistant_annotations() -> None:
    said = {"role": "assistant", "content": [{"type": "input_text", "text": "Done."}]}

    repaired = mend("responses", [user("hi"), said, user("go")], "wrong-text-type")

    assert repaired[1]["content"] == [{"type": "output_text", "text": "Done.", "annotations": []}]


def test_repair_drops_annotations_of_a_text_that_is_not_the_assistants() -> None:
    asked = {"role": "user", "content": [{"type": "output_text", "text": "Go.", "annotations": []}]}

    repaired = mend("responses", [asked], "wrong-text-type")

    assert repaired[0]["content"] == [{"type": "input_text", "text": "Go."}]


def test_a_picture_with_a_misspelled_type_is_shown() -> None:
    repaired = mend("anthropic", [blocks("user", picture("image/jpg", PNG))], "unusable-media")

    assert repaired == [blocks("user", picture("image/jpeg", PNG))]


@pytest.mark.parametrize("data", ["AAAA", "AAA=", "AA==", "AAA", "AA\nAA\n"])
def test_a_picture_in_base64_is_left_alone(data: str) -> None:
    messages = [blocks("user", picture("image/png", data))]

    assert mend("anthropic", messages) == messages


def test_a_document_that_anthropic_cannot_read_becomes_a_note() -> None:
    source = {"type": "base64", "media_type": "application/msword", "data": "AAAA"}
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}

    repaired = mend("anthropic", [blocks("user", {"type": "document", "source": source}, plain)], "unusable-media")

    assert repaired == [blocks("user", text("[file not shown here: application/msword]"), plain)]


@pytest.mark.parametrize(
    ("role", "given", "expected"),
    [
        ("user", "output_text", "input_text"),
        ("developer", "text", "input_text"),
        ("assistant", "input_text", "output_text"),
        ("assistant", "text", "output_text"),
    ],
)
def test_a_text_of_responses_gets_the_type_of_its_role(role: str, given: str, expected: str) -> None:
    messages = [user("hi"), {"role": role, "content": [{"type": given, "text": "x"}]}]

    repaired = mend("responses", messages, "wrong-text-type", source="responses")

    annotations: Body = {"annotations": []} if expected == "output_text" else {}
    assert repaired == [user("hi"), {"role": role, "content": [{"type": expected, "text": "x"} | annotations]}]


def test_a_refusal_of_the_user_and_the_output_of_a_tool_get_the_type_of_their_roles() -> None:
    messages = [
        {"role": "user", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "output_text", "text": "done"}]},
    ]

    repaired = mend("responses", messages, "wrong-text-type", "wrong-text-type", source="responses")

    assert repaired[0]["content"] == [{"type": "input_text", "text": "no"}]
    assert repaired[2]["output"] == [{"type": "input_text", "text": "done"}]


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "e"},
    ],
)
def test_a_mark_for_the_cache_on_reasoning_is_taken_away(thought: Body) -> None:
    marked = thought | {"cache_control": {"type": "ephemeral"}}

    repaired = mend("anthropic", [user("hi"), blocks("assistant", marked, text("so"))], "misplaced-cache-mark")

    assert repaired[1] == blocks("assistant", thought, text("so"))


def test_only_the_last_cache_marks_stay() -> None:
    marked = {**text("x"), "cache_control": {"type": "ephemeral"}}
    messages = [blocks("user", *[marked] * 6)]

    repaired = mend("anthropic", messages, "too-many-cache-marks", "too-many-cache-marks")

    assert [("cache_control" in block) for block in repaired[0]["content"]] == [False, False, True, True, True, True]


def test_marks_inside_results_and_blocks_of_the_providers_own_count_too() -> None:
    marked = {**text("x"), "cache_control": {"type": "ephemeral"}}
    source = {"type": "content", "content": [marked, marked]}
    document = {"type": "document", "source": source, "cache_control": {"type": "ephemeral"}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": [marked]}
    messages = [blocks("user", document), blocks("assistant", use("a")), blocks("user", answer, marked)]

    repaired = mend("anthropic", messages, "too-many-cache-marks")

    assert repaired[0]["content"][0]["source"]["content"] == [text("x"), marked]
    assert repaired[1:] == messages[1:]


def test_a_mark_that_is_null_is_none() -> None:
    messages = [blocks("user", *[{**text("x"), "cache_control": None}] * 6)]

    assert mend("anthropic", messages) == messages


def test_a_longer_lived_cache_mark_after_a_shorter_lived_one_becomes_as_short() -> None:
    long, short = ({"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"})
    marks = [long, short, long]
    messages = [blocks("user", *({**text("x"), "cache_control": mark} for mark in marks))]

    repaired = mend("anthropic", messages, "cache-mark-order")

    assert [block["cache_control"] for block in repaired[0]["content"]] == [long, short, short]


def test_a_mark_that_is_taken_away_does_not_shorten_the_others() -> None:
    long, short = ({"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"})
    messages = [blocks("user", *({**text("x"), "cache_control": mark} for mark in [short, *[long] * 4]))]

    repaired = mend("anthropic", messages, "too-many-cache-marks")

    assert [block.get("cache_control") for block in repaired[0]["content"]] == [None, *[long] * 4]


def server_call(name: str) -> Body:
    return {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}


def server_result(name: str) -> Body:
    return {"type": "web_search_tool_result", "tool_use_id": name, "content": []}


def test_a_call_of_the_providers_own_tool_without_its_result_is_left_out() -> None:
    paired = [server_call("s1"), server_result("s1")]
    messages = [
        user("hi"),
        blocks("assistant", *paired, server_call("s2"), text("so"), server_result("s3")),
        user("ok"),
    ]

    repaired = mend("anthropic", messages, "unpaired-block")

    assert repaired[1] == blocks("assistant", *paired, text("so"))


def test_a_call_of_the_providers_own_tool_may_wait_at_the_end() -> None:
    messages = [user("hi"), blocks("assistant", text("wait"), server_call("s1"))]

    assert mend("anthropic", messages) == messages


# ---- reasoning ------------------------------------------------------------------------------------------------------


def test_reasoning_of_another_api_is_left_out() -> None:
    messages = [Message("user", "hi"), Message("assistant", (Reasoning(text="hm", api="openai"), Text("so")))]

    assert mend("anthropic", messages, "foreign-reasoning")[1].parts == (Text("so"),)


def test_reasoning_without_a_signature_is_left_out_where_it_needs_one() -> None:
    messages = [user("hi"), blocks("assistant", {"type": "thinking", "thinking": "hm", "signature": ""}, text("so"))]

    assert mend("anthropic", messages, "unsigned-reasoning")[1] == blocks("assistant", text("so"))


def test_reasoning_without_what_it_led_to_is_left_out_with_the_message_it_was_alone_in() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    messages = [user("hi"), reasoning, {**reasoning, "id": "rs_2"}, user("go on")]

    repaired = mend("responses", messages, *["dangling-reasoning", "empty-message"] * 2)

    assert repaired == [user("hi"), user("go on")]


def test_reasoning_before_the_items_it_led_to_stays() -> None:
    called = {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}
    messages = [user("hi"), {"type": "reasoning", "id": "rs_1", "summary": []}, called]

    assert mend("responses", messages) == messages


def test_a_thought_in_a_message_of_its_own_stays_before_the_words_it_led_to() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    messages = [user("hi"), blocks("assistant", thought), blocks("assistant", use("a")), blocks("user", used("a"))]

    assert mend("anthropic", messages) == messages


def test_a_thought_at_the_end_of_a_message_is_left_out() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}

    repaired = mend("anthropic", [user("hi"), blocks("assistant", text("so"), thought)], "dangling-reasoning")

    assert repaired[1] == blocks("assistant", text("so"))


# ---- calls ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [('{"path": "a', '{"INVALID_JSON":"{\\"path\\": \\"a"}'), ("[1]", '{"INVALID_JSON":"[1]"}'), ("", "{}")],
)
def test_arguments_that_are_no_object_are_wrapped(arguments: str, expected: str) -> None:
    messages = [user("hi"), calls("a", arguments=arguments), result("a")]

    repaired = mend("openai", messages, "malformed-arguments")

    assert repaired[1]["tool_calls"][0]["function"]["arguments"] == expected


@pytest.mark.parametrize("arguments", ["{}", " { } ", '{"a": 1}'])
def test_arguments_that_are_an_object_stay_as_the_model_wrote_them(arguments: str) -> None:
    messages = [user("hi"), calls("a", arguments=arguments), result("a")]

    assert mend("openai", messages) == messages


def test_a_call_without_a_name_gets_that_of_its_result_or_a_made_up_one() -> None:
    messages = [user("hi"), calls("a", "b", name=" "), {**result("a"), "name": "read"}, result("b")]

    repaired = mend("openai", messages, "blank-tool-name", "blank-tool-name")

    assert [call["function"]["name"] for call in repaired[1]["tool_calls"]] == ["read", "unknown_tool"]


@pytest.mark.parametrize(
    ("api", "name", "expected"),
    [
        ("openai", "ns.read file", "ns_read_file"),
        ("anthropic", "n" * 130, "n" * 128),
        ("gemini", "1st.tool", "_1st.tool"),
        ("gemini", "ns:read file", "ns:read_file"),
    ],
)
def test_a_name_that_the_api_does_not_allow_is_changed_in_call_and_result(api: str, name: str, expected: str) -> None:
    answer = Message("tool", (ToolResult("a", "x", name),))
    messages = [Message("user", "hi"), Message("assistant", (ToolCall("a", name),)), answer]

    repaired = mend(api, messages, "invalid-tool-name")

    assert repaired[1].tool_calls[0].name == repaired[2].tool_results[0].name == expected


def test_calls_without_ids_get_ids_and_their_results_the_same() -> None:
    messages = [
        Message("user", "hi"),
        Message("assistant", (ToolCall("", "read"), ToolCall("", "write"))),
        Message("tool", (ToolResult("", "1", "write"), ToolResult("", "2", "read"))),
    ]

    repaired = mend("anthropic", messages, "missing-id", "missing-id")

    assert [(call.id, call.name) for call in repaired[1].tool_calls] == [("call", "read"), ("call_2", "write")]
    assert [(answer.call_id, answer.text) for answer in repaired[2].tool_results] == [("call_2", "1"), ("call", "2")]


@pytest.mark.parametrize(
    ("api", "given", "expected"),
    [
        ("anthropic", "functions.Bash:0", "functions_Bash_0"),
        ("openai", "x" * 41, "x" * 40),
        ("responses", "y" * 65, "y" * 64),
    ],
)
def test_an_id_that_the_api_does_not_allow_is_changed_in_call_and_result(api: str, given: str, expected: str) -> None:
    messages = [
        Message("user", "hi"),
        Message("assistant", (ToolCall(given, "read"),)),
        Message("tool", (ToolResult(given, "x"),)),
    ]

    repaired = mend(api, messages, "invalid-id")

    assert repaired[1].tool_calls[0].id == repaired[2].tool_results[0].call_id == expected


def test_two_invalid_ids_that_would_become_the_same_stay_different() -> None:
    messages = [
        user("hi"),
        blocks("assistant", use("a.b"), use("a:b")),
        blocks("user", used("a:b", "2"), used("a.b", "1")),
    ]

    repaired = mend("anthropic", messages, "invalid-id", "invalid-id")

    assert repaired[1:] == [
        blocks("assistant", use("a_b"), use("a_b_2")),
        blocks("user", used("a_b_2", "2"), used("a_b", "1")),
    ]


def test_an_id_that_was_used_before_is_changed_where_ids_must_be_unique() -> None:
    messages = [user("hi"), *[blocks("assistant", use("a")), blocks("user", used("a"))] * 3]

    repaired = mend("anthropic", messages, "duplicate-id", "duplicate-id")

    assert [message["content"][0].get("id") for message in repaired[1::2]] == ["a", "a_2", "a_3"]
    assert [message["content"][0].get("tool_use_id") for message in repaired[2::2]] == ["a", "a_2", "a_3"]


def test_an_id_of_a_chat_message_that_comes_again_is_changed_in_call_and_result() -> None:
    messages = [user("hi"), calls("a"), result("a"), calls("a"), result("a", "again")]

    repaired = mend("openai", messages, "duplicate-id")

    assert repaired[:3] == messages[:3]
    assert (repaired[3]["tool_calls"][0]["id"], repaired[4]) == ("a_2", result("a_2", "again"))


def test_a_function_call_of_former_times_may_come_again_because_it_has_no_id() -> None:
    name = "n" * 60
    once = [
        {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}},
        {"role": "function", "name": name, "content": "done"},
    ]
    messages = [user("hi"), *once, *once]

    assert repair_messages(messages, "openai").messages == messages
    assert repair_messages(messages, "openai").findings == ()


def test_an_id_may_come_again_in_a_later_turn_where_only_neighbours_are_matched() -> None:
    messages = [user("hi"), calls("a"), result("a"), calls("a"), result("a")]

    assert mend("neutral", messages, source="openai") == messages


def test_two_calls_of_one_turn_with_one_id_get_their_results_in_order() -> None:
    messages = [user("hi"), calls("a", "a"), result("a", "1"), result("a", "2")]

    repaired = mend("openai", messages, "duplicate-id")

    assert [call["id"] for call in repaired[1]["tool_calls"]] == ["a", "a_2"]
    assert [(each["tool_call_id"], each["content"]) for each in repaired[2:]] == [("a", "1"), ("a_2", "2")]


def test_a_result_without_an_id_is_matched_by_the_name_of_the_tool() -> None:
    messages = [user("hi"), calls("a", name="read"), {**result(""), "name": "read"}]

    assert mend("openai", messages, "unmatched-id")[2]["tool_call_id"] == "a"


def test_a_function_response_gets_the_name_of_its_call() -> None:
    call = {"functionCall": {"id": "a", "name": "read", "args": {}}}
    answer = {"functionResponse": {"id": "a", "name": "", "response": {}}}

    repaired = mend(
        "gemini",
        [content("user", {"text": "hi"}), content("model", call), content("user", answer)],
        "wrong-result-name",
    )

    assert repaired[2]["parts"][0]["functionResponse"]["name"] == "read"


# ---- results --------------------------------------------------------------------------------------------------------


def test_a_result_of_no_call_is_left_out() -> None:
    assert mend("openai", [user("hi"), result("a"), says("so")], "orphan-result") == [user("hi"), says("so")]


def test_a_result_of_no_call_is_left_out_of_a_message_that_says_more() -> None:
    messages = [user("hi"), blocks("assistant", text("so")), blocks("user", used("a"), text("go on"))]

    assert mend("anthropic", messages, "orphan-result")[2] == blocks("user", text("go on"))


def test_of_two_results_the_first_stays() -> None:
    messages = [user("hi"), calls("a"), result("a", "1"), result("a", "2"), says("so")]

    assert mend("openai", messages, "duplicate-result") == [*messages[:3], says("so")]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    messages = [user("hi"), calls("a", "b"), result("b"), user("never mind")]

    repaired = mend("openai", messages, "missing-result")

    assert repaired == [*messages[:3], result("a", NO_RESULT_TEXT), user("never mind")]


def test_a_missing_result_joins_the_others_where_they_stand_together() -> None:
    messages = [user("hi"), blocks("assistant", use("a"), use("b")), blocks("user", used("a"), text("never mind"))]

    repaired = mend("anthropic", messages, "missing-result")

    made_up = {**used("b", NO_RESULT_TEXT), "is_error": True}
    assert repaired[2] == blocks("user", used("a"), made_up, text("never mind"))


@pytest.mark.acceptance("B-01", "T-09")
@pytest.mark.parametrize(
    "end", [[calls("a", "b")], [calls("a", "b"), result("a")], [calls("a", "b"), result("b"), result("a")]]
)
def test_calls_at_the_end_are_left_waiting_and_nothing_is_made_up(end: list[Body]) -> None:
    messages = [user("hi"), *end]

    assert mend("openai", messages) == messages


@pytest.mark.acceptance("B-01")
@pytest.mark.parametrize("api", ["anthropic", "gemini", "responses", "neutral"])
def test_an_open_batch_is_kept_whatever_the_api(api: str) -> None:
    messages = [
        Message("user", "hi"),
        Message("assistant", (ToolCall("a", "read"), ToolCall("b", "read"))),
        Message("tool", (ToolResult("a", "x", "read"),)),
    ]

    assert mend(api, messages) == messages
    assert mend(api, messages[:2]) == messages[:2]


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini", "neutral"])
def test_a_call_without_a_result_before_the_assistants_last_message_gets_one(api: str) -> None:
    called = Message("assistant", (ToolCall("a", "read"),))
    messages = [Message("user", "hi"), called, Message("assistant", "done")]
    codes = ["missing-result", "wrong-last-role"] if api == "gemini" else ["missing-result"]

    repaired = mend(api, messages, *codes)

    assert repaired[:2] == messages[:2]
    made_up = repaired[2].tool_results[0]
    assert (made_up.call_id, made_up.text, repaired[3]) == ("a", NO_RESULT_TEXT, messages[2])


def test_a_call_of_anthropics_own_before_the_last_message_gets_its_result_where_it_belongs() -> None:
    messages = [user("hi"), blocks("assistant", use("a")), says("done")]

    repaired = mend("anthropic", messages, "missing-result")

    assert repaired[2] == blocks("user", used("a", NO_RESULT_TEXT) | {"is_error": True})
    assert repaired[3] is messages[2]


def test_a_call_waits_beside_words_of_the_same_message_and_before_calls_of_the_next() -> None:
    beside = [user("hi"), blocks("assistant", use("a"), text("let me see"))]
    before = [user("hi"), blocks("assistant", use("a")), says("and"), blocks("assistant", use("b"))]

    assert mend("anthropic", beside) == beside
    assert mend("anthropic", before) == before


def test_a_result_before_its_call_is_moved_behind_it() -> None:
    messages = [user("hi"), result("a"), calls("a"), says("so")]

    assert mend("openai", messages, "early-result") == [messages[0], messages[2], messages[1], messages[3]]


def test_a_result_after_other_messages_is_moved_to_its_call_as_the_same_object() -> None:
    messages = [user("hi"), calls("a", "b"), result("a"), user("and?"), result("b"), says("so")]

    repaired = repair_messages(messages, "openai")

    assert [finding.code for finding in repaired.findings] == ["late-result"]
    assert [messages.index(message) for message in repaired.messages] == [0, 1, 2, 4, 3, 5]
    assert all(any(mine is theirs for theirs in messages) for mine in repaired.messages)


def test_calls_in_neighbouring_messages_each_get_their_results_at_once() -> None:
    messages = [user("hi"), calls("a"), calls("b"), result("a"), result("b")]

    repaired = mend("openai", messages, "late-result")

    assert repaired == [user("hi"), calls("a"), result("a"), calls("b"), result("b")]


def test_an_output_may_follow_its_call_anywhere_in_responses() -> None:
    called = {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}
    messages = [user("hi"), called, user("and?"), {"type": "function_call_output", "call_id": "a", "output": "x"}]

    assert mend("responses", messages) == messages


def test_results_in_several_messages_become_one_where_they_stand_together() -> None:
    messages = [
        user("hi"),
        blocks("assistant", use("a"), use("b")),
        blocks("user", used("a")),
        blocks("user", used("b"), text("go on")),
    ]

    repaired = mend("anthropic", messages, "split-results")

    assert repaired[2:] == [blocks("user", used("a"), used("b"), text("go on"))]


def test_results_of_chat_messages_are_left_for_the_conversion_to_join() -> None:
    messages = [user("hi"), calls("a", "b"), result("a"), result("b"), user("go on")]

    assert mend("anthropic", messages, source="openai") == messages


def test_results_come_first_in_their_message() -> None:
    messages = [user("hi"), blocks("assistant", use("a")), blocks("user", text("here"), used("a"))]

    assert mend("anthropic", messages, "results-not-first")[2] == blocks("user", used("a"), text("here"))


def test_what_stands_beside_function_responses_gets_a_content_of_its_own() -> None:
    messages = [
        content("user", {"text": "hi"}),
        content("model", function_call()),
        content("user", function_response(), {"text": "go on"}),
    ]

    repaired = mend("gemini", messages, "results-not-alone")

    assert repaired[2:] == [content("user", function_response()), content("user", {"text": "go on"})]


# ---- who speaks when ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [None, "", "  ", []])
def test_an_assistant_that_says_nothing_is_left_out(empty: object) -> None:
    messages = [user("hi"), {"role": "assistant", "content": empty}, user("hello?")]

    assert mend("openai", messages, "empty-message") == [user("hi"), user("hello?")]


def test_an_empty_list_of_calls_is_left_out() -> None:
    messages = [user("hi"), says("hello") | {"tool_calls": []}, user("bye")]

    assert mend("openai", messages, "empty-field") == [user("hi"), says("hello"), user("bye")]
    assert messages[1]["tool_calls"] == []


def test_an_empty_list_of_content_is_left_out_beside_calls_and_becomes_a_text_in_a_result() -> None:
    messages = [user("hi"), calls("a") | {"content": []}, result("a") | {"content": []}]

    repaired = mend("openai", messages, "empty-field", "empty-field")

    assert "content" not in repaired[1]
    assert repaired[2] == result("a", "")


@pytest.mark.parametrize(
    ("name", "expected"), [("John Doe", "John_Doe"), ("n" * 65, "n" * 64), ("é. w", "___w"), ("日本", None)]
)
def test_a_speakers_name_that_the_api_does_not_allow_is_changed(name: str, expected: str | None) -> None:
    repaired = mend("openai", [user("hi") | {"name": name}], "invalid-speaker-name")

    assert repaired == [user("hi") | ({"name": expected} if expected else {})]


def test_a_result_with_a_name_that_the_api_does_not_allow_gets_that_of_its_call() -> None:
    messages = [user("hi"), calls("a"), result("a") | {"name": "read it"}]

    repaired = mend("openai", messages, "invalid-speaker-name")

    assert repaired[2] == result("a") | {"name": "read"}


def test_a_content_without_parts_is_left_out() -> None:
    messages = [content("user", {"text": "hi"}), content("user")]

    assert mend("gemini", messages, "empty-message") == messages[:1]


def test_instructions_in_the_middle_become_the_users_where_they_are_a_field() -> None:
    messages = [
        {"role": "system", "content": "be kind"},
        user("hi"),
        says("so"),
        {"role": "system", "content": "be brief"},
    ]

    repaired = mend("gemini", messages, "system-message", source="openai")

    assert repaired == [*messages[:3], user("be brief")]


def test_instructions_in_an_apis_own_list_become_the_users_unless_it_takes_them_there() -> None:
    system = {"role": "system", "content": "be kind"}
    messages = [system, user("hi"), system, says("so"), system, user("ok")]

    repaired = mend("anthropic", messages, "system-message", "system-message", source="anthropic")

    assert [message["role"] for message in repaired] == ["user", "user", "system", "assistant", "user", "user"]


def test_a_plain_list_is_taken_for_the_apis_own() -> None:
    messages = [{"role": "system", "content": "be kind"}, user("hi")]

    assert [finding.code for finding in repair_messages(messages, "anthropic").findings] == ["system-message"]


def test_words_and_calls_of_one_turn_become_one_content() -> None:
    messages = [
        content("user", {"text": "hi"}),
        content("model", {"text": "let me see"}),
        content("model", function_call()),
        content("model", function_call("write")),
        content("user", function_response(), function_response("write")),
    ]

    repaired = mend("gemini", messages, "split-turn", "split-turn")

    assert repaired[1] == content("model", {"text": "let me see"}, function_call(), function_call("write"))


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_the_user_begins_where_the_api_wants_it(api: str) -> None:
    messages = [Message("system", "be kind"), Message("assistant", "hello"), Message("user", "hi")]

    repaired = mend(api, messages, "wrong-first-role")

    assert [message.role for message in repaired] == ["system", "user", "assistant", "user"]
    assert repaired[1].content == "[The conversation begins with the assistant.]"


def test_the_user_ends_where_the_api_wants_it() -> None:
    repaired = mend("gemini", [Message("user", "hi"), Message("assistant", "so")], "wrong-last-role")

    assert [message.content for message in repaired] == ["hi", "so", "Continue."]


def test_blanks_at_the_end_of_a_begun_answer_are_taken_away() -> None:
    assert mend("anthropic", [user("hi"), says("It is \n")], "final-blanks", source="anthropic")[1] == says("It is")


# ---- the whole ------------------------------------------------------------------------------------------------------


def test_every_code_has_a_test_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")

    assert [code for code in FINDING_CODES if f'"{code}"' not in source] == []


def test_without_an_api_the_rules_of_the_list_count() -> None:
    assert repair_messages([says("hello")]).findings == ()
    assert [finding.code for finding in repair_messages([content("model", {"text": "hello"})]).findings] == [
        "wrong-first-role",
        "wrong-last-role",
    ]


def test_own_rules_may_be_given() -> None:
    from dataclasses import replace

    strict = replace(RULES_BY_API["openai"], first=frozenset({"user"}))

    assert [finding.code for finding in repair_messages([says("hello")], strict).findings] == ["wrong-first-role"]


def test_findings_say_which_message_and_come_in_order() -> None:
    messages = [user("a\0"), calls("a"), user("b\0"), result("x")]

    found = repair_messages(messages, "openai").findings

    assert [(finding.index, finding.code) for finding in found] == [
        (0, "nul-character"),
        (1, "missing-result"),
        (2, "nul-character"),
        (3, "orphan-result"),
    ]
    assert str(found[1]) == "message 1: the call 'a' has no result [missing-result]"


def test_calls_and_results_without_an_id_are_named_by_their_tool() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]}
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "cat", "response": {"output": "x"}}}]}
    go = {"role": "user", "parts": [{"text": "go"}]}

    missing, orphan = repair_messages([go, call, go, answer], "gemini").findings

    assert missing.message == "the call of 'ls' has no result"
    assert orphan.message == "the result of 'cat' answers no call"


def test_a_result_without_an_id_answers_the_call_without_one() -> None:
    with_id, without = {"name": "read", "id": "a", "args": {}}, {"name": "read", "args": {}}
    answer = {"functionResponse": {"name": "read", "response": {"output": "x"}}}
    messages = [
        content("user", {"text": "go"}),
        content("model", {"functionCall": with_id}, {"functionCall": without}),
        content("user", {"functionResponse": answer["functionResponse"] | {"id": "unknown"}}),
        content("user", {"text": "go on"}),
    ]

    repaired = repair_messages(messages, "gemini")

    assert repaired.messages[2]["parts"][0] == answer
    assert repair_messages(repaired.messages, "gemini") == RepairResult(repaired.messages, ())


@pytest.mark.parametrize("blank", ["", "  "])
def test_an_error_that_says_nothing_is_repaired_only_once(blank: str) -> None:
    messages = [
        content("user", {"text": "go"}),
        content("model", {"functionCall": {"name": "read", "args": {}}}),
        content("user", {"functionResponse": {"name": "read", "response": {"error": blank}}}),
    ]

    repaired = repair_messages(messages, "gemini")

    assert repaired.messages[2]["parts"][0]["functionResponse"]["response"] == {"error": ""}
    assert repair_messages(repaired.messages, "gemini").findings == ()


@pytest.mark.parametrize("is_split", [False, True])
def test_a_providers_own_call_is_not_the_last_once_a_result_is_moved_behind_it(is_split: bool) -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    turn = (
        [blocks("assistant", use("a")), blocks("assistant", search)]
        if is_split
        else [blocks("assistant", search, use("a"))]
    )

    repaired = repair_messages([user("go"), blocks("user", used("a")), *turn], "anthropic")

    assert repaired.messages == [user("go"), blocks("assistant", use("a")), blocks("user", used("a"))]
    assert repair_messages(repaired.messages, "anthropic").findings == ()


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini", "neutral"])
def test_an_empty_list_is_reported_and_stays_empty(api: str) -> None:
    what = f"the {api} API needs at least one message"

    assert repair_messages([], api) == RepairResult([], (Finding("empty-list", what),))


def test_instructions_alone_are_an_empty_list_where_they_are_a_field() -> None:
    messages = [Message("system", "Be brief.")]

    assert [finding.code for finding in repair_messages(messages, "anthropic").findings] == ["empty-list"]
    assert repair_messages(messages, "openai").findings == ()


@pytest.mark.parametrize("given", [None, "hello", {"messages": []}, 3])
def test_what_is_no_list_is_refused(given: Any) -> None:
    with pytest.raises(MessageError, match="expected a list of messages"):
        repair_messages(given)


def test_a_message_that_nobody_knows_is_named() -> None:
    with pytest.raises(MessageError, match=r"messages\[1\]"):
        repair_messages([user("hi"), {"role": "usr", "content": "x"}], "openai", source="openai")


def test_an_unknown_api_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'anthropic'"):
        repair_messages([], "antropic")


def test_arguments_nested_too_deeply_are_refused() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]

    with pytest.raises(MessageError, match=r"nested deeper than 100 levels\n  at messages\[0\]"):
        repair_messages([Message("assistant", (ToolCall("a", "read", {"deep": deep}),))])


def test_a_result_without_a_name_gets_one_where_it_joins_results_in_gemini_s_own_words() -> None:
    results = [
        Message("tool", (ToolResult("a", "x", "read"),), api="gemini"),
        Message("tool", (ToolResult("b", "y"),)),
    ]
    asked = Message("assistant", (ToolCall("a", "read", {}), ToolCall("b", "list", {})))

    repaired = repair_messages([Message("user", "Why?"), asked, *results], api="gemini")

    assert [result.name for message in repaired.messages for result in message.tool_results] == ["read", "list"]


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini", "neutral"])
def test_a_result_of_no_call_at_the_end_does_not_keep_calls_waiting(api: str) -> None:
    messages = [user("hi"), calls("a"), says("never mind"), result("other")]

    repaired = repair_messages(messages, api, source="openai")

    assert NO_RESULT_TEXT in [message["content"] for message in repaired.messages]
    again = repair_messages(repaired.messages, api, source="openai")
    assert (again.messages, again.findings) == (repaired.messages, ())


@pytest.mark.parametrize("name", ["", "read it", "read"])
@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini"])
def test_a_former_function_call_without_result_gets_one_that_matches_its_name(api: str, name: str) -> None:
    messages = [user("hi"), {"role": "assistant", "function_call": {"name": name, "arguments": "{}"}}, user("and?")]

    repaired = repair_messages(messages, api, source="openai")

    called, answered = repaired.messages[1]["function_call"], repaired.messages[2]
    assert answered == {"role": "function", "name": called["name"], "content": NO_RESULT_TEXT}
    assert repair_messages(repaired.messages, api, source="openai").findings == ()


def test_former_function_calls_of_one_name_become_calls_with_ids_where_the_api_needs_them() -> None:
    turn = [
        {"role": "assistant", "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "function", "name": "read", "content": "done"},
    ]
    messages = [user("hi"), *turn, user("again"), *turn]

    repaired = mend("anthropic", messages, "duplicate-id", source="openai")

    assert repaired[4]["tool_calls"][0]["id"] == repaired[5]["tool_call_id"] == "call_read_2"
    assert repair_messages(repaired, "anthropic", source="openai").findings == ()


@pytest.mark.parametrize("source", ["text", "content"])
def test_half_characters_and_nuls_are_repaired_in_documents_of_words(source: str) -> None:
    words = "half \ud83d, nul\0"
    inner = {"type": "content", "content": words}
    if source == "text":
        inner = {"type": "text", "media_type": "text/plain", "data": words}

    [message] = mend(
        "anthropic", [blocks("user", {"type": "document", "source": inner})], "lone-surrogate", "nul-character"
    )

    repaired = message["content"][0]["source"]
    assert repaired["data" if source == "text" else "content"] == "half \ufffd, nul"
    assert inner.get("data", inner.get("content")) == words
