"""Summaries by Responses and Gemini, through the client that agents use."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_plugins.providers import EndpointError
from tests.plugins.providers.endpoints import SUMMARY, Answer, request, serving, summarizer


def responses(text: str = SUMMARY, **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    output = [{"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}]
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": output} | fields


def gemini(text: str = SUMMARY, ended: str = "STOP") -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": ended}]}


CUT_OFF = {
    "responses": responses(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "gemini": gemini(ended="MAX_TOKENS"),
}
GOOD_REPLIES = {"responses": responses(), "gemini": gemini()}
EACH_API = pytest.mark.parametrize("api", ["responses", "gemini"])


@EACH_API
def test_a_summary_is_asked_for_and_read(api: str) -> None:
    with serving(Answer(GOOD_REPLIES[api])) as server:
        assert summarizer(server.url, api)(request("Summarise: he fixed login.py.")) == SUMMARY

    assert server.paths == [{"responses": "/responses", "gemini": "/v1/models/m:generateContent"}[api]]
    assert "he fixed login.py" in str(server.body)


@EACH_API
def test_a_summary_that_is_cut_off_says_so(api: str) -> None:
    with serving(Answer(CUT_OFF[api])) as server:
        summary = summarizer(server.url, api)(request())

    assert summary == f"{SUMMARY}\n[The summary was cut off here.]"


@pytest.mark.parametrize(
    ("api", "reply", "what"),
    [
        ("responses", {"error": {"message": "Busy"}}, "reported an error: Busy"),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "refused: SAFETY"),
        ("responses", responses(""), "wrote nothing"),
        ("gemini", gemini(""), "wrote nothing"),
        ("responses", [], "answered with JSON that is not a reply"),
        ("gemini", {"candidates": 5}, "answered with JSON that is not a reply"),
    ],
)
def test_what_is_no_summary_is_an_error_that_says_why(api: str, reply: object, what: str) -> None:
    with serving(Answer(reply)) as server, pytest.raises(EndpointError) as caught:
        summarizer(server.url, api, max_retries=0)(request())

    assert caught.value.what.startswith(f"the endpoint {what}")
