"""Permission levels: which tool calls run, which ask, and which are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.layers.policy import PERMISSION_LEVELS, tightest_level

if TYPE_CHECKING:
    from nexus_core.types.settings import Settings

ToolRisk = Literal["low", "medium", "high"]
"""Risk of a tool: it only reads, does ordinary work, or does something that a person should see first."""
TOOL_RISKS: tuple[ToolRisk, ...] = get_args(ToolRisk)

Verdict = Literal["run", "ask", "refuse"]
_VERDICTS: dict[str, tuple[Verdict, Verdict, Verdict]] = {
    "yolo": ("run", "run", "run"),
    "trusted": ("run", "run", "ask"),
    "sandboxed": ("run", "ask", "refuse"),
}
"""By level, the verdict about tools of each risk."""


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """The result of a permission question that was not answered in time, which refuses the tool call.

    Attributes:
        seconds: The time that there was for an answer.
    """

    seconds: float


def decide_call(level: str, risk: ToolRisk) -> Verdict:
    """Return whether a tool of that risk runs, asks or is refused."""
    return _VERDICTS[level][TOOL_RISKS.index(risk)]


def read_level(given: str | None, settings: Settings, parent: str | None = None) -> str:
    """Return the permission level of an agent: the loosest that is allowed, or a tighter one that is asked for.

    Args:
        given: The level that its program asks for; None for the loosest that is allowed.
        settings: The settings of its directory.
        parent: The level of its parent, which it never exceeds; None for none.

    Raises:
        UnknownNameError: There is no such level.
        UsageError: It is looser than the settings or its parent allow.
    """
    if given is not None and given not in PERMISSION_LEVELS:
        raise UnknownNameError("permission level", given, PERMISSION_LEVELS)
    settled = str(settings.get("permissions.level", "trusted"))
    allowed = settled if parent is None else tightest_level(settled, parent)
    if given is None or tightest_level(given, allowed) == given:
        return given or allowed
    if allowed != settled:
        raise UsageError(
            f"its parent has the permission level {parent!r}, and {given!r} is looser",
            hint="a worker never has more permission than its parent",
        )
    raise UsageError(
        f"the settings allow the permission level {allowed!r}, not {given!r}",
        hint="only permissions.level in the user's own config.json makes it looser",
    )
