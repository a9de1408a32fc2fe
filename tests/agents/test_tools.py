"""Whatever a tool does, the model reads a result, and the turn goes on."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from nexus_core import Nexus, UsageError
from nexus_core.agents import DoneEvent, ToolResultEvent
from nexus_core.agents.tools import MAX_RESULT_CHARACTERS, FunctionTool, tool
from nexus_core.plugin import Image, ToolResult
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied


def run_tool(nexus: Nexus, function: Any, arguments: dict[str, Any] | None = None, **options: Any) -> ToolResult:
    """What the model reads of a tool that it calls, after which the turn has ended as it should."""
    given = function if isinstance(function, FunctionTool) else tool(function, name="work")
    model = FakeModel(called(given.name, arguments or {}), replied("I see."))
    events = list(nexus.agent("s", tools=[given], provider=model.provider, **options).run("Go."))
    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert (done.text, done.cancelled) == ("I see.", False)
    (result,) = (each.result for each in events if isinstance(each, ToolResultEvent))
    return result


def text_of(result: ToolResult) -> str:
    return "".join(part.text for part in result.parts if hasattr(part, "text"))


class Loud:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@dataclass
class Price:
    item: str
    price: float


class Shelf(BaseModel):
    items: list[str]


ITSELF: list[Any] = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "(no result)"),
        (3, "3"),
        (True, "true"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([], "[]"),
        (b"bytes \xc3\xa9", "bytes é"),
        (b"\xff\xfe\x00", "[3 bytes that are not text]"),
        (Price("roll", 0.6), '{"item":"roll","price":0.6}'),
        (Shelf(items=["rye"]), '{"items":["rye"]}'),
        (datetime(2026, 11, 17, tzinfo=UTC), '"2026-11-17T00:00:00Z"'),
        ({1}, "[1]"),
        (float("nan"), '"NaN"'),
        (object, "\"<class 'object'>\""),
        (Loud(), '"[an object of type Loud]"'),
        (ITSELF, "[[...]]"),
        ("lone \ud800 surrogate", "lone � surrogate"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_returned_becomes_text(make_nexus: MakeNexus, value: object, text: str) -> None:
    result = run_tool(make_nexus(), lambda: value)

    assert (text_of(result), result.is_error) == (text, False)


def test_an_image_stays_an_image(make_nexus: MakeNexus) -> None:
    picture = Image(mime="image/png", data="iVBORw0KGgo=")

    result = run_tool(make_nexus(), lambda: picture)

    assert result.parts == (picture,)


def test_megabytes_are_cut_in_the_middle(make_nexus: MakeNexus) -> None:
    text = text_of(run_tool(make_nexus(), lambda: "a" * 3_000_000 + "end"))

    assert len(text) < MAX_RESULT_CHARACTERS + 100
    assert "[… 2,000,003 characters left out …]" in text
    assert text.endswith("end")


def test_megabytes_that_are_printed_do_no_harm(make_nexus: MakeNexus, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_tool(make_nexus(), lambda: sys.stdout.write("x" * 3_000_000))

    assert text_of(result) == "3000000"
    assert len(capsys.readouterr().out) == 3_000_000


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such file"), "ValueError: no such file"),
        (KeyError("a"), "KeyError: 'a'"),
        (SystemExit(2), "SystemExit: 2"),
        (StopIteration(), "StopIteration"),
        (RuntimeError("x" * 1_000_000), "characters left out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_raised_is_an_error_result(make_nexus: MakeNexus, error: BaseException, text: str) -> None:
    def work() -> None:
        raise error

    result = run_tool(make_nexus(), work)

    assert result.is_error
    assert text in text_of(result)
    assert len(text_of(result)) < 5_000


def test_a_tool_that_hangs_is_not_waited_for(make_nexus: MakeNexus) -> None:
    never = threading.Event()

    result = run_tool(make_nexus(), tool(lambda: never.wait(30), name="work", timeout=0.1))

    assert result.is_error
    assert text_of(result) == "work gave no result in 0.1 seconds; it may still be running"
    never.set()


def test_a_generator_without_an_end_is_not_waited_for(make_nexus: MakeNexus) -> None:
    def count() -> Iterator[int]:
        while True:
            time.sleep(0.05)
            yield 1

    result = run_tool(make_nexus(), tool(count, timeout=0.3))

    assert result.is_error
    assert "0.3" in text_of(result)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e12, 0, -1])
def test_a_time_out_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="must be a number of seconds"):
        tool(lambda: None, name="nap", timeout=seconds)


def test_an_async_tool_runs_in_a_blocking_agent(make_nexus: MakeNexus) -> None:
    async def work(word: str) -> str:
        await asyncio.sleep(0)
        return word.upper()

    assert text_of(run_tool(make_nexus(), work, {"word": "yes"})) == "YES"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "it was not run: count: Field required"),
        ({"count": "many"}, "it was not run: count: Input should be a valid integer"),
        ({"count": 1, "more": 2}, "it was not run: more: Extra inputs are not permitted"),
    ],
)
def test_arguments_that_do_not_fit_are_told_to_the_model(
    make_nexus: MakeNexus, arguments: dict[str, Any], text: str
) -> None:
    ran: list[int] = []

    def work(count: int) -> None:
        ran.append(count)

    result = run_tool(make_nexus(), work, arguments)

    assert result.is_error
    assert text_of(result).startswith(text)
    assert ran == []


def test_arguments_become_what_the_signature_says(make_nexus: MakeNexus) -> None:
    seen: list[object] = []

    def work(path: Path, shelf: Shelf, day: Literal["mon", "tue"] = "mon", *, _json: int = 1, schema: int = 2) -> None:
        seen.extend((path, shelf, day, _json, schema))

    run_tool(make_nexus(), work, {"path": "a/b", "shelf": {"items": ["x"]}, "schema": 5})

    assert seen == [Path("a/b"), Shelf(items=["x"]), "mon", 1, 5]


def test_the_model_calls_a_tool_that_is_none(make_nexus: MakeNexus) -> None:
    model = FakeModel(called("worc", {}), replied("I see."))

    events = list(make_nexus().agent("s", tools=[tool(lambda: 1, name="work")], provider=model.provider).run("Go."))

    (result,) = (each.result for each in events if isinstance(each, ToolResultEvent))
    assert result.is_error
    assert text_of(result) == "there is no tool called 'worc'; did you mean 'work'?"


def test_descriptions_come_from_the_docstring_and_the_hints() -> None:
    @tool(risk="low")
    def search(words: str, limit: Annotated[int, Field(ge=1, description="Most results.")] = 10) -> list[str]:
        """Search the shop.

        It is fast.

        Args:
            words: What to look for,
                in English.

        Returns:
            Names.
        """
        return [words] * limit

    assert search.definition.description == "Search the shop.\n\nIt is fast."
    assert search.definition.parameters["properties"] == {
        "words": {"type": "string", "description": "What to look for, in English."},
        "limit": {"type": "integer", "default": 10, "minimum": 1, "description": "Most results."},
    }
    assert search("a", limit=2) == ["a", "a"]


def _star(*words: str) -> None: ...


def _double_star(**words: str) -> None: ...


def _foreign(lock: threading.Event) -> None: ...


@pytest.mark.parametrize("function", [_star, _double_star, _foreign, lambda: 1, 5])
def test_what_cannot_be_a_tool_is_refused_when_the_agent_is_opened(make_nexus: MakeNexus, function: Any) -> None:
    with pytest.raises(UsageError):
        make_nexus().agent("s", tools=[function])
