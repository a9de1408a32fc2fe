"""Takes the tools out of a server's list that the SDK would refuse: it refuses all the others along with them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import mcp_types
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from nexus_plugins.mcp._telling.records import Unusable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mcp.client._transport import ReadStream

    from nexus_plugins.mcp._running.line import Line

METHOD = "tools/list"
MOST_TOOLS = 10_000
"""How many of a list are looked at: of millions that are none, what is wrong with each would fill the memory."""
LONGEST_REASON = 200
"""Characters that are told of why a tool cannot be used."""
_TOO_MANY = f"no more than {MOST_TOOLS:,} are read"


class Sifted:
    """What a server says, without such tools; which they were is noted at the line.

    Args:
        stream: What the server says.
        line: The way to it.
        version: Says which version of the protocol is spoken; None while nobody knows.
    """

    def __init__(
        self, stream: ReadStream[SessionMessage | Exception], line: Line, version: Callable[[], str | None]
    ) -> None:
        self._stream = stream
        self._line = line
        self._version = version

    async def receive(self) -> SessionMessage | Exception:
        """What it says next."""
        return self._sift(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._sift(await self._stream.__anext__())

    async def aclose(self) -> None:
        """Hear nothing more."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - the SDK's own affair
        """What the SDK looks for beside a message."""
        return getattr(self._stream, "last_context", None)

    def _sift(self, said: SessionMessage | Exception) -> SessionMessage | Exception:
        version = self._version()
        if version and isinstance(said, SessionMessage) and isinstance(said.message, mcp_types.JSONRPCResponse):
            self._line.unusable += sift_tools(said.message.result, version)
        return said


def sift_tools(result: dict[str, Any], version: str) -> list[Unusable]:
    """Take the tools out of a result that cannot be used, and say which they were; of any other result, nothing."""
    tools = result.get("tools")
    if not isinstance(tools, list):
        return []
    unread = len(tools) - MOST_TOOLS
    result["tools"] = tools = tools[:MOST_TOOLS]
    reasons = _reasons(result, version)
    result["tools"] = [tool for number, tool in enumerate(tools) if number not in reasons]
    unusable = [Unusable(_name(tools[number], number), reasons[number]) for number in sorted(reasons)]
    return [*unusable, *([Unusable(f"the last {unread:,} of its list", _TOO_MANY)] if unread > 0 else [])]


def _reasons(result: dict[str, Any], version: str) -> dict[int, str]:
    """By its place in the list, what the SDK would say of a tool; it looks twice."""
    reasons: dict[int, str] = {}
    looks = (
        partial(validate_server_result, METHOD, version),
        partial(mcp_types.ListToolsResult.model_validate, by_name=False),
    )
    for look in looks:
        try:
            look(result)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_context=False, include_input=False):
                match each["loc"]:
                    case ("tools", int(number), *path):
                        place = f"{'.'.join(map(str, path))}: " if path else ""
                        reasons.setdefault(number, f"{place}{each['msg']}"[:LONGEST_REASON])
        except (KeyError, ValueError):  # a version without such a list, or none that is known
            pass
    return reasons


def _name(tool: Any, number: int) -> str:  # noqa: ANN401 - any JSON value
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) and name else f"number {number + 1} of its list"
