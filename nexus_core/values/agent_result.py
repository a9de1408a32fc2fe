"""What an agent brings back from a whole turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nexus_core.values.conversation import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What an agent brings back that has run a turn by itself.

    Attributes:
        messages: Everything that was said, in the shape of any API or as `Message`.
        tool_calls: What was called, as the agent reports it.
        usage: What it cost, or its fields by name.
        stop_reason: Why it ended, in the agent's own word.
        error: What went wrong, None if nothing did.
        id: The agent's own name for this run, "" for none. With one, the same result may be recorded again, and is
            kept once.
    """

    messages: tuple[object, ...]
    tool_calls: tuple[object, ...] = ()
    usage: Usage | None = None
    stop_reason: str = ""
    error: str | None = None
    id: str = ""

    if TYPE_CHECKING:  # what may be given is more than what is kept

        def __init__(
            self,
            *,
            messages: Iterable[object],
            tool_calls: Iterable[object] = (),
            usage: Usage | Mapping[str, int] | None = None,
            stop_reason: str = "",
            error: str | None = None,
            id: str = "",  # noqa: A002 - the field's name
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
