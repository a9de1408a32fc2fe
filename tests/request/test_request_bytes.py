"""No request has more bytes than were counted for it, whatever it says and whichever API it is for."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.dialects.registry import BUILT_IN_NAMES, get_dialect
from nexus_core.dialects.requests import count_message_bytes, count_option_bytes, count_tool_bytes
from nexus_core.types.messages import ROLES, File, Image, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from tests.effort import examples
from tests.history.broken import ANYTHING, ENCODERS, MESSAGES
from tests.request.contexts import CLAUDE, FOR_API, LOOK, context_of

APIS = st.sampled_from(BUILT_IN_NAMES)
TEXTS = st.text(st.characters(codec=None), max_size=12) | st.text('"\\\n\x01,:é中😀', max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=4)
BASE64 = st.binary(max_size=60).map(lambda data: b64encode(data).decode())
PACKED = TEXTS.map(lambda text: b64encode(text.encode("utf-8", "surrogatepass")).decode())
MIMES = st.sampled_from(["", "image/png", "application/pdf", "text/plain", "application/json", "audio/mpeg", "x/中"])
URLS = st.sampled_from(["", "https://example.org/a.pdf", "data:image/png;base64,AAAA", "gs://files/1"])
IMAGES = st.builds(Image, mime=MIMES, data=BASE64 | TEXTS, url=URLS, file_id=TEXTS, detail=TEXTS)
FILES = st.builds(File, name=TEXTS, mime=MIMES, data=PACKED | BASE64 | TEXTS, url=URLS, file_id=TEXTS)
PARTS = st.one_of(
    st.builds(Text, TEXTS),
    IMAGES,
    FILES,
    st.builds(Reasoning, text=TEXTS, signature=TEXTS, encrypted=TEXTS, api=st.sampled_from(["", *BUILT_IN_NAMES])),
    st.builds(Opaque, st.sampled_from(BUILT_IN_NAMES), OBJECTS),
    st.builds(ToolCall, TEXTS, TEXTS, OBJECTS, st.none() | TEXTS | OBJECTS.map(json.dumps)),
    st.builds(ToolResult, TEXTS, st.lists(st.builds(Text, TEXTS) | IMAGES | FILES, max_size=3), TEXTS, st.booleans()),
)
ODD = st.lists(st.builds(Message, st.sampled_from(ROLES), st.lists(PARTS, max_size=4), TEXTS), max_size=4)
TOOLS = st.lists(st.builds(Tool, name=TEXTS, description=TEXTS, parameters=OBJECTS), max_size=3)


def measured(messages: Sequence[Message], tools: Sequence[Tool], system: str) -> int:
    said = [*([Message("system", system)] if system else []), *messages]
    return sum(map(count_message_bytes, said)) + count_tool_bytes(tools) + count_option_bytes({})


def sent(api: str, messages: Sequence[Message], tools: Sequence[Tool], system: str) -> int:
    """The bytes of a request, in the longest JSON that an SDK makes of it."""
    context = context_of(messages, past=len(messages), model=FOR_API.get(api, CLAUDE), tools=tools, system=system)
    return len(json.dumps(context.to(api)))


ODD_REQUESTS = (APIS, ODD | MESSAGES, TOOLS, TEXTS, st.sampled_from([1, 8]))


def require_measured(api: str, messages: list[Message], tools: list[Tool], system: str, times: int) -> None:
    """More is measured than is sent; said often enough that nothing is covered by what is added once."""
    assert sent(api, messages * times, tools, system) <= measured(messages * times, tools, system)


@pytest.mark.acceptance("R16")
@settings(max_examples=examples(15))
@given(*ODD_REQUESTS)
def test_no_request_is_larger_than_was_measured(
    api: str, messages: list[Message], tools: list[Tool], system: str, times: int
) -> None:
    require_measured(api, messages, tools, system, times)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(*ODD_REQUESTS)
def test_however_odd_no_request_is_larger_than_was_measured(
    api: str, messages: list[Message], tools: list[Tool], system: str, times: int
) -> None:
    require_measured(api, messages, tools, system, times)


@pytest.mark.acceptance("R16")
@settings(max_examples=examples(15))
@given(APIS, st.sampled_from(sorted(ENCODERS)), ANYTHING)
def test_nor_is_one_with_messages_that_an_api_wrote(api: str, source: str, turns: list[Any]) -> None:
    messages = [get_dialect(source).read(each) for each in ENCODERS[source](turns)]

    require_measured(api, messages, [LOOK], "Be brief.", 8)


@pytest.mark.parametrize("api", BUILT_IN_NAMES)
def test_of_a_picture_hardly_more_is_measured_than_is_sent(api: str) -> None:
    messages = [Message("user", [Text("What is it?"), Image(mime="image/png", data="A" * 1_000_000)])]

    assert measured(messages, [], "") - sent(api, messages, [], "") < 3000
