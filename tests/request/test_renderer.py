"""A renderer of a stranger, which may do anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from nexus_core import Message, Nexus, UsageError, hookimpl
from nexus_core.errors import PluginError
from nexus_core.plugin import Renderer

ANSWER = {"role": "assistant", "content": "Because."}


def fails(*_: object) -> NoReturn:
    raise ZeroDivisionError("oh")


def words(request: Any, *_: object) -> Message:
    message: Message = request.message
    return message


class Strange:
    """Brings a renderer `strange` with some of its functions replaced."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.functions: dict[str, Any] = {"system": lambda _: "Be brief.", "current": words} | functions

    @hookimpl
    def nexus_renderers(self) -> list[Renderer]:
        return [Renderer(name="strange", **self.functions)]


def opened(ledger: Any = "memory:", **functions: Callable[..., Any]) -> Nexus:
    return Nexus(plugins=[Strange(**functions)], ledger=ledger)


@pytest.mark.parametrize(
    ("functions", "what"),
    [
        ({"system": fails}, "system of its renderer 'strange' raised ZeroDivisionError: oh"),
        ({"system": lambda _: 5}, "system of its renderer 'strange' answered int, expected a text"),
        ({"current": fails}, "current of its renderer 'strange' raised ZeroDivisionError: oh"),
        ({"current": lambda *_: "Why?"}, "current of .* answered str, expected a message of the user"),
        ({"current": lambda *_: Message("assistant", "No.")}, "current of .* answered a message of the assistant"),
        ({"current": lambda *_: Message("user", " ")}, "current of .* answered an empty message"),
        ({"arrange": fails}, "arrange of its renderer 'strange' raised ZeroDivisionError: oh"),
        ({"arrange": lambda _: 5}, "arrange of its renderer 'strange' did not answer with messages"),
        ({"arrange": lambda _: ([Message("user", "x")], None)}, "did not answer with messages"),
        ({"arrange": lambda _: ((1, 2), None)}, "did not answer with messages"),
        ({"arrange": lambda _: ((), "Why?")}, "did not answer with messages"),
        ({"configure": fails}, "configure of its renderer 'strange' raised ZeroDivisionError: oh"),
        ({"configure": lambda _: None}, "configure of its renderer 'strange' answered NoneType, expected a Renderer"),
    ],
)
def test_what_a_renderer_does_wrong_is_said_with_its_name(functions: dict[str, Any], what: str) -> None:
    with opened(**functions) as nexus, pytest.raises(PluginError, match=what):
        nexus.assemble(nexus.request(message="Why?", model="gpt-4o", renderer="strange"))


def test_what_a_renderer_says_to_the_user_comes_as_it_is() -> None:
    def refuses(*_: object) -> NoReturn:
        raise UsageError("not on a Sunday")

    with opened(current=refuses) as nexus, pytest.raises(UsageError, match="not on a Sunday"):
        nexus.assemble(nexus.request(message="Why?", model="gpt-4o", renderer="strange"))


def test_what_a_renderer_cannot_put_into_words_opens_no_turn() -> None:
    with opened(current=fails) as nexus:
        with pytest.raises(PluginError):
            nexus.session("s", model="gpt-4o", renderer="strange").ask("Why?")

        assert nexus.ledger.session("s") is None


def test_a_reply_is_kept_whatever_became_of_the_renderer_meanwhile() -> None:
    with opened(arrange=lambda given: ((), given.current)) as nexus:
        nexus.session("s", model="gpt-4o", renderer="strange").ask("Why?")

        with opened(nexus.ledger, arrange=fails) as other:
            step = other.session("s").record(ANSWER)

        assert step.done
        assert nexus.session("s").messages[-1].content == "Because."
