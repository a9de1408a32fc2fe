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


SAID: dict[str, tuple[str, int | None, int | None, int]] = {
    "openai": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130511 tokens.",
        *(128_000, 130_511, 0),
    ),
    "openai with functions": (
        (
            "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (3000 "
            "in the messages, 1000 in the functions, and 1000 in the completion)."
        ),
        *(4097, 4000, 1000),
    ),
    "openai, long inputs": (
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301000 tokens. "
            "Please reduce the length of the messages."
        ),
        *(272_000, 301_000, 0),
    ),
    "openai, limit alone": ("Input tokens exceed the configured limit of 922000 tokens.", 922_000, None, 0),
    "openai responses": (
        "Your input exceeds the context window of this model. Please adjust your input.",
        *(None, None, 0),
    ),
    "deepseek": (
        (
            "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the "
            "messages, 4000 in the completion). Please reduce the length of the messages or completion."
        ),
        *(65_536, 66_000, 4000),
    ),
    "vllm": (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 of input).",
        *(4096, 5000, 0),
    ),
    "vllm 1": (
        (
            "The decoder prompt (length 5,000) is longer than the maximum model length of 4096. Make sure that "
            "`max_model_len` is no smaller than the number of text tokens."
        ),
        *(4096, 5000, 0),
    ),
    "vllm, answer too large": (
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context "
            "length is 4096 tokens and your request has 4000 input tokens (1000 > 4096 - 4000)."
        ),
        *(4096, 4000, 0),
    ),
    "vllm 2": (
        (
            "You passed 27905 input tokens and requested 4096 output tokens. However, the model's context length is "
            "only 32000 tokens, resulting in a maximum input length of 27904 tokens."
        ),
        *(32_000, 27_905, 4096),
    ),
    "vllm 2, before it has counted": (
        (
            "You passed 500001 input characters and requested 0 output tokens. However, the model's context length is "
            "only 32000 tokens, resulting in a maximum input length of 32000 tokens."
        ),
        *(32_000, None, 0),
    ),
    "sglang": (
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        *(4096, 5000, 0),
    ),
    "sglang, with answer": (
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested "
            "a total of 5000 tokens: 4500 tokens from the input messages and 500 tokens for the completion."
        ),
        *(4096, 4500, 500),
    ),
    "tgi": (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
        *(4096, 5000, 0),
    ),
    "tgi, input alone": ("`inputs` must have less than 1024 tokens. Given: 1500", 1024, 1500, 0),
    "openrouter": (
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 "
            "tokens (134000 of text input, 2000 of tool input, 4000 in the output)."
        ),
        *(131_072, 136_000, 4000),
    ),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        *(32_768, 40_000, 0),
    ),
    "gemini": (
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        *(1_048_576, 1_048_577, 0),
    ),
    "gemini, limit alone": (
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        *(1_048_576, None, 0),
    ),
    "vertex": (
        "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576.",
        *(1_048_576, 1_200_000, 0),
    ),
    "xai": (
        "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        *(131_072, 150_000, 0),
    ),
    "llama.cpp": (
        "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
        *(8192, 9000, 0),
    ),
    "llama-cpp-python": ("Requested tokens (5000) exceed context window of 4096", 4096, 5000, 0),
    "ds4": ("Prompt has 32769 tokens, but the configured context size is 32768 tokens", 32_768, 32_769, 0),
    "lm studio": (
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded "
            "with context length of only 4096 tokens, which is not enough."
        ),
        *(4096, None, 0),
    ),
    "ollama": ("the input length exceeds maximum context length", None, None, 0),
    "ollama cloud": ("prompt too long; exceeded max context length by 65590 tokens (ref: 632f)", None, None, 0),
    "dashscope": (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]",
        *(202_745, None, 0),
    ),
    "zhipu": ("Prompt exceeds max length", None, None, 0),
    "poolside": ("The input exceeds the maximum allowed input length of 131,072 tokens", 131_072, None, 0),
    "fireworks": ("The prompt is too long: 140000, model maximum context length: 131071", 131_071, 140_000, 0),
    "cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
        *(4081, 5000, 0),
    ),
    "cerebras": (
        "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
        *(8192, 9000, 0),
    ),
    "github": ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000, None, 0),
    "copilot": ("prompt token count of 70000 exceeds the limit of 64000", 64_000, 70_000, 0),
    "bedrock": ("Input is too long for requested model.", None, None, 0),
    "kimi": ("Invalid request: Your request exceeded model token limit: 131072", 131_072, None, 0),
    "kimi for coding": (
        "Your request exceeded model token limit: 262144 (requested: 300000)",
        *(262_144, 300_000, 0),
    ),
}


@pytest.mark.parametrize("server", SAID)
def test_the_words_of_common_servers_are_understood(server: str) -> None:
    message, limit, asked, answer = SAID[server]

    found = read_overflow(openai_error({"message": message, "type": "invalid_request_error"}))

    assert found is not None
    assert (found.limit, found.asked, found.answer) == (limit, asked, answer)


@pytest.mark.parametrize("number", ["0", "0" * 5000, "9" * 5000])
def test_a_number_that_means_nothing_does_no_harm(number: str) -> None:
    found = read_overflow(RuntimeError(f"maximum context length is {number} tokens"))

    assert found is not None
    assert found.limit is None or found.limit >= 10**11


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


def test_room_for_the_answer_is_told_apart_from_what_was_sent() -> None:
    said = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length"

    found = read_overflow(anthropic_error("invalid_request_error", said))

    assert found is not None
    assert (found.limit, found.asked, found.answer) == (200_000, 190_000, 20_000)


def test_a_body_that_is_too_large_is_an_overflow() -> None:
    found = read_overflow(anthropic_error("request_too_large", "Request exceeds the maximum size", 413))
    assert found is not None
    assert found.is_size


@pytest.mark.parametrize(
    "message",
    [
        "413 Request Entity Too Large",
        "Error code: 413 - {'error': 'Request Entity Too Large (ref: 632f)'}",
        "Error code: 413 - {'type': 'error', 'error': {'type': 'request_too_large', 'message': 'Too big.'}}",
        "400 INVALID_ARGUMENT. Request payload size exceeds the limit: 20971520 bytes.",
    ],
)
def test_a_body_that_is_too_large_is_known_by_its_words_where_an_error_has_no_status(message: str) -> None:
    found = read_overflow(RuntimeError(message))

    assert found is not None
    assert found.is_size


@pytest.mark.parametrize(
    "message",
    [
        "Error code: 400 - {'error': {'message': 'Too long.', 'code': 'context_length_exceeded'}}",
        "litellm.ContextWindowExceededError: Too long.",
        "model_context_window_exceeded",
    ],
)
def test_a_code_is_known_in_the_words_of_an_error_that_another_program_has_wrapped(message: str) -> None:
    assert read_overflow(RuntimeError(message)) is not None


@pytest.mark.acceptance("D-05")
def test_an_error_of_the_google_sdk_is_understood() -> None:
    from google.genai.errors import ClientError

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
        ("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.", 429),
        ("Too many tokens, please wait before trying again.", 400),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", 400),
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
