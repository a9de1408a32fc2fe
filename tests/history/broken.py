"""Conversations as they should be and as they are: strategies for lists of every API, valid or broken in many ways."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

from nexus_core.types.messages import File, Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

Body = dict[str, Any]


class Call(NamedTuple):
    id: str
    name: str
    arguments: Any


class Said(NamedTuple):
    text: str
    calls: tuple[Call, ...] = ()
    thought: bool = False
    odd: bool = False
    """Whether it has what its API refuses: an empty list of calls, a text of the wrong type, a marked thought."""


class Results(NamedTuple):
    answers: tuple[tuple[str, str, str], ...]
    text: str = ""
    text_first: bool = False


class Word(NamedTuple):
    role: str
    text: str
    odd: bool = False
    """Whether it has what its API refuses: a speaker's name with a blank, a text of the wrong type, a bitmap."""


IDS = st.sampled_from(["a", "b", "c", "call_1", "functions.Bash:0", "x" * 70, "x" * 70 + "y", ""])
NAMES = st.sampled_from(["read", "write", "bad name", "ns.tool", "1st", "", "n" * 70])
TEXTS = st.sampled_from(["hello", "done ", "", "  ", "nul\0nul", "half \ud83d", "\ud83d\ude00", "日本"])
ARGUMENTS = st.sampled_from([{}, {"path": "x"}, {"text": "nul\0"}, {"half \ud83d": [1, {"a": "\udc00"}]}])
CALLS = st.builds(Call, IDS, NAMES, ARGUMENTS)
SAID = st.builds(Said, TEXTS, st.lists(CALLS, max_size=3).map(tuple), st.booleans(), st.booleans())
RESULTS = st.builds(
    Results, st.lists(st.tuples(IDS, NAMES, TEXTS), min_size=1, max_size=3).map(tuple), TEXTS, st.booleans()
)
WORDS = st.builds(Word, st.sampled_from(["user", "user", "system"]), TEXTS, st.booleans())
BITMAP: Body = {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "AAAA"}}
ANYTHING = st.lists(st.one_of(SAID, RESULTS, WORDS), max_size=10)


@st.composite
def valid_turns(draw: st.DrawFn) -> list[Any]:
    """What nobody would refuse: questions, calls with all their results, answers."""
    turns: list[Any] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        turns.append(Word("user", "question"))
        for _ in range(draw(st.integers(0, 2))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                calls.append(Call(f"call_{number}", draw(st.sampled_from(["read", "write"])), {"n": number}))
            turns.append(Said(draw(st.sampled_from(["let me see", "looking"])), tuple(calls)))
            turns.append(Results(tuple((call.id, call.name, "result") for call in calls)))
        turns.append(Said("answer"))
    return [*turns, Word("user", "thanks")]


def chat(turns: list[Any]) -> list[Body]:
    messages: list[Body] = []
    for turn in turns:
        if isinstance(turn, Word):
            messages.append({"role": turn.role, "content": turn.text, **({"name": "John Doe"} if turn.odd else {})})
        elif isinstance(turn, Results):
            tail = [{"role": "user", "content": turn.text}] if turn.text else []
            answers = [{"role": "tool", "tool_call_id": name, "content": text} for name, _, text in turn.answers]
            messages += [*tail, *answers] if turn.text_first else [*answers, *tail]
        else:
            message: Body = {"role": "assistant", "content": turn.text or None}
            if turn.calls:
                message["tool_calls"] = [
                    {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
                    for c in turn.calls
                ]
            elif turn.odd:
                message["tool_calls"] = []
            messages.append(message | ({"reasoning_content": "hm"} if turn.thought else {}))
    return messages


def items(turns: list[Any]) -> list[Body]:
    found: list[Body] = []
    for turn in turns:
        if isinstance(turn, Word):
            typed = [{"type": "output_text", "text": turn.text}]
            found.append({"role": turn.role, "content": typed if turn.odd else turn.text})
        elif isinstance(turn, Results):
            tail = [{"role": "user", "content": turn.text}] if turn.text else []
            answers = [{"type": "function_call_output", "call_id": i, "output": text} for i, _, text in turn.answers]
            found += [*tail, *answers] if turn.text_first else [*answers, *tail]
        else:
            if turn.thought:
                found.append({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"})
            if turn.text:
                kind = "input_text" if turn.odd else "output_text"
                said = [{"type": kind, "text": turn.text, "annotations": []}]
                found.append({"type": "message", "role": "assistant", "content": said})
            found += [
                {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": json.dumps(c.arguments)}
                for c in turn.calls
            ]
    return found


def blocks(turns: list[Any]) -> list[Body]:
    messages: list[Body] = []
    for turn in turns:
        if isinstance(turn, Word):
            seen = [{"type": "text", "text": turn.text}, BITMAP]
            messages.append({"role": turn.role, "content": seen if turn.odd else turn.text})
        elif isinstance(turn, Results):
            tail = [{"type": "text", "text": turn.text}] if turn.text else []
            answers = [
                {"type": "tool_result", "tool_use_id": i, "content": text, **({} if text else {"is_error": True})}
                for i, _, text in turn.answers
            ]
            messages.append({"role": "user", "content": [*tail, *answers] if turn.text_first else [*answers, *tail]})
        else:
            thought: Body = {"type": "thinking", "thinking": "hm", "signature": "s"}
            thought |= {"cache_control": {"type": "ephemeral"}} if turn.odd else {}
            said: list[Body] = [thought] if turn.thought else []
            said.append({"type": "text", "text": turn.text})
            said += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in turn.calls]
            messages.append({"role": "assistant", "content": said})
    return messages


def contents(turns: list[Any]) -> list[Body]:
    found: list[Body] = []
    for turn in turns:
        if isinstance(turn, Word):
            found.append({"role": "user", "parts": [{"text": turn.text}]})
        elif isinstance(turn, Results):
            tail = [{"text": turn.text}] if turn.text else []
            answers = [{"functionResponse": {"name": n, "response": {"output": text}}} for _, n, text in turn.answers]
            found.append({"role": "user", "parts": [*tail, *answers] if turn.text_first else [*answers, *tail]})
        else:
            said: list[Body] = [{"text": "hm", "thought": True}] if turn.thought else []
            said.append({"text": turn.text})
            said += [{"functionCall": {"name": c.name, "args": c.arguments}} for c in turn.calls]
            found.append({"role": "model", "parts": said})
    return found


def neutral(turns: list[Any]) -> list[Message]:
    messages: list[Message] = []
    for turn in turns:
        if isinstance(turn, Word):
            messages.append(Message("system" if turn.role == "system" else "user", (Text(turn.text),)))
        elif isinstance(turn, Results):
            answers = tuple(ToolResult(i, (Text(text),), name, is_error=not text) for i, name, text in turn.answers)
            tail = (Text(turn.text),) if turn.text else ()
            parts: tuple[Part, ...] = (*tail, *answers) if turn.text_first else (*answers, *tail)
            messages.append(Message("user" if tail else "tool", parts))
        else:
            thoughts = (Reasoning(text="hm", signature="s", api="anthropic"),) if turn.thought else ()
            calls = tuple(ToolCall(c.id, c.name, c.arguments) for c in turn.calls)
            messages.append(Message("assistant", (*thoughts, Text(turn.text), *calls)))
    return messages


ENCODERS = {"openai": chat, "responses": items, "anthropic": blocks, "gemini": contents}

_PARTS = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(ToolCall, IDS, NAMES, ARGUMENTS, st.sampled_from([None, "", "{", "[1]", "{}"])),
    st.builds(lambda i, text, name: ToolResult(i, (Text(text),), name), IDS, TEXTS, NAMES),
    st.builds(
        lambda api, signature: Reasoning(text="hm", signature=signature, api=api),
        st.sampled_from(["anthropic", "openai", "responses", "gemini", ""]),
        st.sampled_from(["", "s"]),
    ),
    st.builds(Opaque, st.sampled_from(["anthropic", "openai"]), st.just({"type": "strange"})),
    st.just(Image(mime="image/png", data="AAAA")),
    st.just(File(name="f.pdf", mime="application/pdf", data="AAAA")),
)
MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(["system", "user", "assistant", "assistant", "tool"]),
        st.lists(_PARTS, max_size=4).map(tuple),
        st.just(""),
        st.sampled_from(["", "", "anthropic", "openai", "gemini"]),
    ),
    max_size=8,
)
"""Anything that can be said in neutral messages at all."""


@st.composite
def mutated(draw: st.DrawFn, elements: list[Any]) -> list[Any]:
    """A list with elements left out, repeated and exchanged."""
    kept = [element for element in elements if draw(st.integers(0, 5))]
    if draw(st.booleans()) and kept:
        kept.insert(draw(st.integers(0, len(kept))), draw(st.sampled_from(kept)))
    if draw(st.booleans()) and len(kept) > 1:
        one, other = draw(st.integers(0, len(kept) - 1)), draw(st.integers(0, len(kept) - 1))
        kept[one], kept[other] = kept[other], kept[one]
    is_cut = draw(st.booleans())
    return kept[: draw(st.integers(0, len(kept)))] if is_cut else kept
