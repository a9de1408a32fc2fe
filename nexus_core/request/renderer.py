"""Asks a renderer for words, and holds it to its contract."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

from nexus_core.errors import NexusError, PluginError
from nexus_core.host.calls import describe_exception
from nexus_core.host.discovery import OWN_DISTRIBUTION
from nexus_core.text.safety import repair_surrogates
from nexus_core.types.prompt import Renderer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.messages import Message
    from nexus_core.types.prompt import ArrangedMessages, ArrangeRequest, Section
    from nexus_core.types.request import Request

_HALVES = 2


def configure_renderer(renderer: Renderer, loaded: LoadedLayers) -> Renderer:
    """A renderer as the settings and the files of a place want it.

    Raises:
        PluginError: It failed, or the answer is of another kind; so do all of these.
    """
    if renderer.configure is None:
        return renderer
    answer = _ask(renderer, "configure", renderer.configure, loaded)
    if not isinstance(answer, Renderer):
        raise _broken(renderer, "configure", f"answered {_kind(answer)}, expected a Renderer")
    return answer if answer.plugin == renderer.plugin else replace(answer, plugin=renderer.plugin)


def render_system(renderer: Renderer, sections: Sequence[Section]) -> str:
    """The static zone in words, with surrogates joined, as every request needs it."""
    answer = _ask(renderer, "system", renderer.system, sections)
    if not isinstance(answer, str):
        raise _broken(renderer, "system", f"answered {_kind(answer)}, expected a text")
    return answer if answer.isascii() else repair_surrogates(answer)


def render_input(renderer: Renderer, request: Request, sections: Sequence[Section], now: int) -> Message:
    """What was said, in words; arguments as for `Renderer.current`."""
    answer = _ask(renderer, "current", renderer.current, request, sections, now)
    if not _is_message(answer) or answer.role != "user":
        raise _broken(renderer, "current", f"answered {_kind(answer)}, expected a message of the user")
    if _is_blank(answer) and request.message is not None and not _is_blank(request.message):
        raise _broken(renderer, "current", "answered an empty message, so that the model would not read what was said")
    return answer


def arrange_messages(renderer: Renderer, given: ArrangeRequest) -> ArrangedMessages:
    """History and input as the renderer sends them; it must be one that rearranges."""
    assert renderer.arrange is not None  # noqa: S101 - asked before
    answer = _ask(renderer, "arrange", renderer.arrange, given)
    if not isinstance(answer, tuple) or len(answer) != _HALVES or not _are_messages(*answer):
        raise _broken(renderer, "arrange", "did not answer with messages and a message, as in Arranged")
    from nexus_core.types.prompt import ArrangedMessages

    return ArrangedMessages(*answer)


def _are_messages(history: object, current: object) -> bool:
    is_input = current is None or _is_message(current)
    return is_input and isinstance(history, tuple) and all(map(_is_message, history))


def _is_message(value: object) -> TypeGuard[Message]:
    from nexus_core.types.messages import Message

    return isinstance(value, Message)


def _is_blank(message: Message) -> bool:
    """True if a message holds nothing but blank texts."""
    from nexus_core.types.messages import Text

    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)


def _ask(renderer: Renderer, name: str, function: Callable[..., object], *given: object) -> Any:  # noqa: ANN401 - whatever it answers
    try:
        return function(*given)
    except NexusError:  # which is addressed to the user
        raise
    except (Exception, SystemExit) as error:
        raise _broken(renderer, name, describe_exception(error)) from error


def _kind(answer: object) -> str:
    return f"a message of the {answer.role}" if _is_message(answer) else type(answer).__name__


def _broken(renderer: Renderer, name: str, what: str) -> PluginError:
    said = f"{name} of its renderer {renderer.name!r} {what}"
    return PluginError(said, plugin=renderer.plugin or OWN_DISTRIBUTION, hook="nexus_renderers")
