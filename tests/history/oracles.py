"""What each API refuses, written down a second time: on the lists as they are sent, sharing no code with repair.

Each function returns complaints; an empty list is an accepted one. Calls at the end may wait for their results.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def openai(messages: list[Body]) -> list[str]:
    bad = list(_characters(messages))
    ids = Counter(call["id"] for message in messages for call in message.get("tool_calls") or [])
    bad += [f"id {name!r} twice" for name, count in ids.items() if count > 1]
    at = 0
    while at < len(messages):
        message = messages[at]
        bad += [f"{at}: {what}" for what in _chat_message(message)]
        if message["role"] == "tool":
            bad.append(f"{at}: tool message without a call before it")
        at += 1
        waiting = Counter(call["id"] for call in message.get("tool_calls") or [])
        while waiting and at < len(messages):
            message = messages[at]
            if message["role"] != "tool" or message["tool_call_id"] not in waiting:
                bad.append(f"{at}: calls {sorted(waiting)} were not answered first")
                break
            bad += [f"{at}: {what}" for what in _chat_message(message)]
            del waiting[message["tool_call_id"]]
            at += 1
    return bad


def _chat_message(message: Body) -> Iterator[str]:
    content = message.get("content")
    if message["role"] == "assistant":
        if not message.get("tool_calls") and not _says_something(content):
            yield "empty assistant"
    elif content is None or content == []:
        yield "no content"
    if [] in (content, message.get("tool_calls")):
        yield "an empty list"
    if not _NAME.fullmatch(message.get("name", "nameless")):
        yield "name of speaker"
    if message["role"] != "user" and isinstance(content, list) and any(part["type"] == "image_url" for part in content):
        yield "image outside of a user message"
    for call in message.get("tool_calls") or []:
        yield from _chat_call(call)


def _chat_call(call: Body) -> Iterator[str]:
    if not 1 <= len(call["id"]) <= 40:
        yield "length of id"
    if not _NAME.fullmatch(call["function"]["name"]):
        yield "name of tool"
    if not _is_object_text(call["function"]["arguments"]):
        yield "arguments"


def _says_something(content: object) -> bool:
    if isinstance(content, list):
        return any(part.get("type") != "text" or part["text"].strip() for part in content)
    return isinstance(content, str) and bool(content.strip())


def responses(items: list[Body]) -> list[str]:
    bad = list(_characters(items))
    calls: dict[str, int] = {}
    answered: set[str] = set()
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            bad += [f"{at}: {what}" for what in _function_call(item, calls)]
            calls[item["call_id"]] = at
        elif kind == "function_call_output":
            if item["call_id"] not in calls or item["call_id"] in answered:
                bad.append(f"{at}: output without a call before it, or a second one")
            answered.add(item["call_id"])
        elif kind == "message" and isinstance(item["content"], list):
            bad += [f"{at}: {part['type']} of {item['role']}" for part in item["content"] if not _fits(part, item)]
        elif kind == "reasoning" and (at + 1 == len(items) or not _is_output_item(items[at + 1])):
            bad.append(f"{at}: reasoning without its following item")
    bad += [f"{at}: no output" for name, at in calls.items() if name not in answered and not _is_open(items, at)]
    return bad


def _fits(part: Body, item: Body) -> bool:
    return part["type"] in (("output_text", "refusal") if item["role"] == "assistant" else _INPUTS)


_INPUTS = ("input_text", "input_image", "input_file", "input_audio")


def _function_call(item: Body, calls: dict[str, int]) -> Iterator[str]:
    if item["call_id"] in calls:
        yield "call_id twice"
    if not 1 <= len(item["call_id"]) <= 64:
        yield "length of call_id"
    if not _NAME.fullmatch(item["name"]):
        yield "name of tool"
    if not _is_object_text(item["arguments"]):
        yield "arguments"


def _is_output_item(item: Body) -> bool:
    kind = item.get("type", "message")
    return kind in ("function_call", "reasoning") or (kind == "message" and item["role"] == "assistant")


def _is_open(items: list[Body], at: int) -> bool:
    """Whether nothing but the rest of that answer and outputs of it come after a call."""
    rest = items[at:]
    while rest and _is_output_item(rest[0]):
        rest = rest[1:]
    return all(item.get("type") == "function_call_output" for item in rest)


def anthropic(messages: list[Body]) -> list[str]:
    bad = list(_characters(messages))
    blocks = [_blocks(message) for message in messages]
    bad += [f"{at}: {what}" for at, message in enumerate(messages) for what in _anthropic_message(message, blocks[at])]
    if messages and messages[0]["role"] != "user":
        bad.append("0: first message must use the user role")
    ids = Counter(block["id"] for each in blocks for block in each if block["type"] == "tool_use")
    bad += [f"id {name!r} twice" for name, count in ids.items() if count > 1]
    bad += _anthropic_pairs(messages, blocks)
    bad += _anthropic_system(messages)
    if messages and messages[-1]["role"] == "assistant":
        final = blocks[-1][-1].get("text", "") if blocks[-1] else ""
        if final != final.rstrip():
            bad.append("final assistant content ends with blanks")
    return [*bad, *cache_marks(messages)]


def cache_marks(*bodies: Any) -> list[str]:
    """What Anthropic says about the marks in tools, system and messages, given in this order."""
    found = [mark.get("ttl", "5m") for body in bodies for mark in _marks(body)]
    bad = [f"more than 4 blocks with cache_control: {len(found)}"] if len(found) > 4 else []
    return bad if found == sorted(found) else [*bad, f"a ttl='1h' after a ttl='5m': {found}"]


def _marks(value: Any) -> Iterator[Body]:
    if isinstance(value, list):
        for element in value:
            yield from _marks(element)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "cache_control":
                yield from _marks(inner)
        if value.get("cache_control") is not None:
            yield value["cache_control"]


def _blocks(message: Body) -> list[Body]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _anthropic_message(message: Body, blocks: list[Body]) -> Iterator[str]:
    if not blocks:
        yield "empty content"
    for block in blocks:
        kind, inner = block["type"], block.get("content") if block["type"] == "tool_result" else None
        texts = [block, *(inner if isinstance(inner, list) else [])]
        if any(text["type"] == "text" and not text["text"].strip() for text in texts):
            yield "blank text"
        if block.get("is_error") and not inner:
            yield "an error without content"
        if kind == "tool_use":
            yield from _tool_use(block)
        if kind == "thinking" and not block.get("signature"):
            yield "thinking without a signature"
        if kind in ("thinking", "redacted_thinking") and "cache_control" in block:
            yield "a marked thought"
        if kind == "image" and block["source"].get("media_type", "image/png") not in _IMAGES:
            yield "type of image"
        if message["role"] not in _SPEAKERS.get(kind, ("user", "assistant", "system")):
            yield f"{kind} in a message of the {message['role']}"


_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_SPEAKERS = {
    "tool_use": ("assistant",),
    "thinking": ("assistant",),
    "redacted_thinking": ("assistant",),
    "tool_result": ("user",),
    "image": ("user",),
    "document": ("user",),
}


def _tool_use(block: Body) -> Iterator[str]:
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
        yield "pattern of id"
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"]):
        yield "name of tool"
    if not isinstance(block["input"], dict):
        yield "input"


def _anthropic_pairs(messages: list[Body], blocks: list[list[Body]]) -> Iterator[str]:
    at = 0
    expected: list[str] = []
    while at < len(messages):
        if messages[at]["role"] == "assistant":
            turn: list[Body] = []
            while at < len(messages) and messages[at]["role"] == "assistant":
                turn += blocks[at]
                at += 1
            expected = [block["id"] for block in turn if block["type"] == "tool_use"]
            ends = {block["type"] for block in blocks[at - 1]}
            if at == len(messages) and expected and "text" in ends and "tool_use" not in ends:
                yield f"{at - 1}: words after calls without results"
            if turn and turn[-1]["type"] in ("thinking", "redacted_thinking"):
                yield f"{at - 1}: the final block is thinking"
            continue
        kinds = [block["type"] == "tool_result" for block in blocks[at]]
        found = [block["tool_use_id"] for block in blocks[at] if block["type"] == "tool_result"]
        if kinds != sorted(kinds, reverse=True):
            yield f"{at}: results are not first"
        is_waiting = at == len(messages) - 1 and all(kinds)
        if (Counter(found) - Counter(expected)) or (Counter(expected) - Counter(found) and not is_waiting):
            yield f"{at}: results {found} for calls {expected}"
        expected = []
        at += 1


def _anthropic_system(messages: list[Body]) -> Iterator[str]:
    for at, message in enumerate(messages):
        if message["role"] == "system":
            follows_user = at > 0 and messages[at - 1]["role"] == "user"
            if not follows_user or (at + 1 < len(messages) and messages[at + 1]["role"] != "assistant"):
                yield f"{at}: system message in the wrong place"


def gemini(contents: list[Body]) -> list[str]:
    bad = list(_characters(contents))
    if contents and contents[0]["role"] != "user":
        bad.append("0: must begin with the user")
    for at in range(len(contents)):
        bad += [f"{at}: {what}" for what in (*_gemini_content(contents, at), *_gemini_pairs(contents, at))]
    last = contents[-1] if contents else None
    if last and last["role"] == "model" and not _inner(last, "functionCall"):
        bad.append("must end with a user or a function response")
    return bad


def _inner(content: Body, kind: str) -> list[Body]:
    return [part[kind] for part in content["parts"] if kind in part]


def _gemini_content(contents: list[Body], at: int) -> Iterator[str]:
    content = contents[at]
    parts, calls = content["parts"], _inner(content, "functionCall")
    if not parts or any(not text.strip() for text in _inner(content, "text")):  # type: ignore[attr-defined] # a text
        yield "empty parts"
    if content["role"] not in ("user", "model"):
        yield "role"
    if calls and (content["role"] != "model" or at == 0 or contents[at - 1]["role"] != "user"):
        yield "call does not follow the user"
    for call in calls:
        yield from _gemini_call(call)


def _gemini_pairs(contents: list[Body], at: int) -> Iterator[str]:
    answers = _inner(contents[at], "functionResponse")
    asked = _inner(contents[at - 1], "functionCall") if at else []
    if answers and len(answers) < len(contents[at]["parts"]):
        yield "responses beside something else"
    is_waiting = at == len(contents) - 1 and len(answers) < len(asked) and len(answers) == len(contents[at]["parts"])
    if not is_waiting and len(asked) != len(answers):
        yield f"{len(answers)} responses to {len(asked)} calls"
    if Counter(answer["name"] for answer in answers) - Counter(call["name"] for call in asked):
        yield "names of responses"


def _gemini_call(call: Body) -> Iterator[str]:
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", call["name"]):
        yield "name of function"
    if not isinstance(call.get("args", {}), dict):
        yield "args"


def _characters(value: Any) -> Iterator[str]:
    written = json.dumps(value)
    if "\\u0000" in written.replace("\\\\", ""):
        yield "NUL"
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        yield "surrogate"


def _is_object_text(text: object) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


ORACLES = {"openai": openai, "responses": responses, "anthropic": anthropic, "gemini": gemini}
