"""A long list of which only the middle tells its dialect."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import MessageError, check, fit
from nexus_core.history.fit import TELLING
from tests.history.counters import Characters

Body = dict[str, Any]
ANYBODYS: list[Body] = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "on"}] * TELLING


def anthropic() -> list[Body]:
    call = {"type": "tool_use", "id": "a", "name": "ls", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    return [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": "So."},
    ]


def responses() -> list[Body]:
    return [
        {"role": "user", "content": "Why?"},
        {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"role": "assistant", "content": "So."},
    ]


@pytest.mark.acceptance("T-09")
@pytest.mark.parametrize(("api", "beginning"), [("anthropic", anthropic()), ("responses", responses())])
def test_the_dialect_is_told_by_whatever_is_read(api: str, beginning: list[Body]) -> None:
    messages = [*beginning, *ANYBODYS]
    newest = 3 * len(ANYBODYS)

    for budget in range(newest - 3, newest + 30):
        assert check(fit(messages, budget=budget, counter=Characters()).messages) == ()
    whole = newest + 30
    untold, told = fit(messages, budget=whole), fit(messages, budget=whole, api=api)
    assert (untold.messages, untold.decisions, untold.findings) == (told.messages, told.decisions, told.findings)


def test_what_is_left_out_tells_nothing_and_is_not_read() -> None:
    messages: list[Any] = [ANYBODYS[0], "no message", *ANYBODYS]

    assert len(fit(messages, budget=30, counter=Characters()).messages) == 10


def test_what_is_no_message_is_named_by_its_place_in_the_whole_list() -> None:
    place = len(ANYBODYS) + 1

    with pytest.raises(MessageError, match=rf"messages\[{place}\]"):
        fit([*ANYBODYS, ANYBODYS[0], 3, ANYBODYS[1]], budget=30, counter=Characters())
