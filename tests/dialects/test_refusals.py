"""What a dialect cannot read is refused, with the place of what is wrong in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nexus_core.dialects.registry import get_dialect
from nexus_core.errors import MessageError
from tests.dialects import (
    test_anthropic,
    test_gemini,
    test_openai,
    test_responses,
)
from tests.dialects import (
    test_anthropic as test_anthropic_reply,
)
from tests.dialects import (
    test_anthropic as test_anthropic_writing,
)
from tests.dialects import (
    test_gemini as test_gemini_reply,
)
from tests.dialects import (
    test_gemini as test_gemini_writing,
)
from tests.dialects import (
    test_openai as test_openai_reply,
)
from tests.dialects import (
    test_openai as test_openai_request,
)
from tests.dialects import (
    test_responses as test_responses_reply,
)
from tests.dialects import (
    test_responses as test_responses_request,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def cases(tables: Mapping[str, Sequence[tuple[Any, ...]]]) -> list[Any]:
    """Each row of the tables: what is given, the place, and words that must be said where the table has some."""
    return [
        pytest.param(api, given, path, *(words or [""]), id=f"{api}-{path or 'all'}")
        for api, table in tables.items()
        for given, path, *words in table
    ]


def assert_refused(read: Callable[[Any], object], given: object, path: str, words: str) -> None:
    with pytest.raises(MessageError) as refused:
        read(given)

    assert refused.value.path == path
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("api", "message", "path", "words"),
    cases(
        {
            "openai": test_openai.BAD,
            "responses": test_responses.BAD,
            "anthropic": test_anthropic.BAD,
            "gemini": test_gemini.BAD,
        }
    ),
)
def test_what_is_no_message_is_refused_with_its_place(api: str, message: object, path: str, words: str) -> None:
    assert_refused(get_dialect(api).read, message, path, words)


@pytest.mark.parametrize(
    ("api", "body", "path", "words"),
    cases(
        {
            "openai": test_openai_request.BAD_REQUESTS,
            "responses": test_responses_request.BAD_REQUESTS,
            "anthropic": test_anthropic_writing.BAD_REQUESTS,
            "gemini": test_gemini_writing.BAD_REQUESTS,
        }
    ),
)
def test_what_is_no_request_is_refused_with_its_place(api: str, body: object, path: str, words: str) -> None:
    assert_refused(get_dialect(api).read_request, body, path, words)


@pytest.mark.parametrize(
    ("api", "reply", "path", "words"),
    cases(
        {
            "openai": test_openai_reply.BAD_REPLIES,
            "responses": test_responses_reply.BAD_REPLIES,
            "anthropic": test_anthropic_reply.BAD_REPLIES,
            "gemini": test_gemini_reply.BAD_REPLIES,
        }
    ),
)
def test_what_is_no_reply_is_refused_with_its_place(api: str, reply: object, path: str, words: str) -> None:
    assert_refused(get_dialect(api).read_reply, reply, path, words)
