"""Calls of renderers, which enforce their contract: a wrong result or an exception becomes a PluginError."""

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

_ARRANGED_LENGTH = 2


def configure_renderer(renderer: Renderer, loaded: LoadedLayers) -> Renderer:
    """Return a renderer configured by the loaded settings and files.

    Raises:
        PluginError: The renderer failed or returned something else. So do the functions below.
    """
    if renderer.configure is None:
        return renderer
    result = _call(renderer, "configure", renderer.configure, loaded)
    if not isinstance(result, Renderer):
        raise _build_error(renderer, "configure", f"answered {_describe(result)}, expected a Renderer")
    return result if result.plugin == renderer.plugin else replace(result, plugin=renderer.plugin)


def render_system(renderer: Renderer, sections: Sequence[Section]) -> str:
    """Return the system prompt of the sections, with surrogate pairs joined."""
    result = _call(renderer, "system", renderer.system, sections)
    if not isinstance(result, str):
        raise _build_error(renderer, "system", f"answered {_describe(result)}, expected a text")
    return result if result.isascii() else repair_surrogates(result)


def render_input(renderer: Renderer, request: Request, sections: Sequence[Section], now: int) -> Message:
    """Return the rendered user message; arguments as for `Renderer.current`."""
    result = _call(renderer, "current", renderer.current, request, sections, now)
    if not _is_message(result) or result.role != "user":
        raise _build_error(renderer, "current", f"answered {_describe(result)}, expected a message of the user")
    if _is_blank(result) and request.message is not None and not _is_blank(request.message):
        raise _build_error(
            renderer, "current", "answered an empty message, so that the model would not read what was said"
        )
    return result


def arrange_messages(renderer: Renderer, request: ArrangeRequest) -> ArrangedMessages:
    """Return history and input as rearranged by a renderer that has `arrange`."""
    assert renderer.arrange is not None  # noqa: S101 - callers check it
    result = _call(renderer, "arrange", renderer.arrange, request)
    if not isinstance(result, tuple) or len(result) != _ARRANGED_LENGTH or not _are_messages(*result):
        raise _build_error(renderer, "arrange", "did not answer with messages and a message, as in Arranged")
    from nexus_core.types.prompt import ArrangedMessages

    return ArrangedMessages(*result)


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


def _call(renderer: Renderer, name: str, function: Callable[..., object], *arguments: object) -> Any:  # noqa: ANN401 - callers check the result
    try:
        return function(*arguments)
    except NexusError:  # already a message to the user
        raise
    except (Exception, SystemExit) as error:
        raise _build_error(renderer, name, describe_exception(error)) from error


def _describe(result: object) -> str:
    return f"a message of the {result.role}" if _is_message(result) else type(result).__name__


def _build_error(renderer: Renderer, name: str, problem: str) -> PluginError:
    message = f"{name} of its renderer {renderer.name!r} {problem}"
    return PluginError(message, plugin=renderer.plugin or OWN_DISTRIBUTION, hook="nexus_renderers")
