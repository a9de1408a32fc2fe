"""A provider's error tells whether a request was too long."""

from __future__ import annotations

import anthropic
import httpx2
import openai
import pytest

from nexus_core.compaction.overflow import read_overflow

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")


def openai_error(body: dict[str, object], status: int = 400) -> openai.APIStatusError:
    response = httpx2.Response(status, json={"error": body}, request=REQUEST)
    return openai.APIStatusError(f"Error code: {status} - {response.json()}", response=response, body=body)


def anthropic_error(kind: str, message: str, status: int = 400) -> anthropic.APIStatusError:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    response = httpx2.Response(status, json=body, request=REQUEST)
    return anthropic.APIStatusError(f"Error code: {status} - {body}", response=response, body=body)


SAID = {
    "openai": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130511 tokens.",
        128_000,
        130_511,
    ),
    "openai responses": ("Your input exceeds the context window of this model. Please adjust your input.", None, None),
    "vllm": (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 of input).",
        4096,
        5000,
    ),
    "openrouter": (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens.",
        131_072,
        140_000,
    ),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum",
        None,
        40_000,
    ),
    "gemini": (
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
        1_048_577,
    ),
    "xai": ("This model's maximum prompt length is 131072 but the request contains 150000 tokens.", 131_072, 150_000),
    "llama.cpp": (
        "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
        8192,
        9000,
    ),
    "copilot": ("prompt token count of 70000 exceeds the limit of 64000", 64_000, 70_000),
    "bedrock": ("Input is too long for requested model.", None, None),
    "kimi": ("Invalid request: Your request exceeded model token limit: 131072", 131_072, None),
}


@pytest.mark.parametrize("server", SAID)
def test_the_words_of_common_servers_are_understood(server: str) -> None:
    message, limit, asked = SAID[server]

    found = read_overflow(openai_error({"message": message, "type": "invalid_request_error"}))

    assert found is not None
    assert (found.limit, found.asked) == (limit, asked) if server != "mistral" else found.asked == asked


@pytest.mark.acceptance("D-05")
def test_an_error_of_the_openai_sdk_is_known_by_its_code() -> None:
    error = openai_error({"message": "Too long.", "code": "context_length_exceeded", "type": "invalid_request_error"})

    assert read_overflow(error) is not None


@pytest.mark.acceptance("D-05")
def test_an_error_of_the_anthropic_sdk_tells_its_numbers() -> None:
    found = read_overflow(
        anthropic_error("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")
    )

    assert found is not None
    assert (found.limit, found.asked) == (200_000, 208_310)


def test_room_for_the_answer_counts_as_asked_for() -> None:
    said = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length"

    found = read_overflow(anthropic_error("invalid_request_error", said))

    assert found is not None
    assert (found.limit, found.asked) == (200_000, 210_000)


def test_a_body_that_is_too_large_is_an_overflow() -> None:
    assert read_overflow(anthropic_error("request_too_large", "Request exceeds the maximum size", 413)) is not None


@pytest.mark.acceptance("D-05")
def test_an_error_of_the_google_sdk_is_understood() -> None:
    from google.genai.errors import ClientError  # noqa: PLC0415 - takes a second to import

    message = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."
    error = ClientError(400, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})

    found = read_overflow(error)

    assert found is not None
    assert found.limit == 1_048_576


def test_the_cause_of_an_error_is_looked_at() -> None:
    wrapped = RuntimeError("the call failed")
    wrapped.__cause__ = openai_error({"message": SAID["openai"][0], "code": "context_length_exceeded"})

    assert read_overflow(wrapped) is not None


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (
            "Too large on tokens per min (TPM): limit 30000. Please reduce the length of the messages.",
            429,
        ),
        ("Rate limit reached", 429),
        ("Incorrect API key provided", 401),
        ("messages.0.content: text content blocks must be non-empty", 400),
        ("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", 400),
        ("Overloaded", 529),
    ],
)
def test_other_errors_are_no_overflow(message: str, status: int) -> None:
    assert read_overflow(openai_error({"message": message}, status)) is None


def test_an_error_that_cannot_be_printed_is_no_overflow() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    assert read_overflow(MuteError()) is None
