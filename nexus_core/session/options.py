"""What a caller says about a session, and what the session remembers of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = ("model", "role", "renderer", "permissions", "task", "skills")
"""What a session remembers in its record; its tools are in the epoch."""


class Options(NamedTuple):
    """What the caller says; None for what was said before, or for what is usual.

    Attributes:
        model: Whom to ask.
        tools: What the model may ask for, in the shape of any API.
        role: What part the agent plays.
        renderer: What puts its requests into words.
        permissions: What the agent may do, in the caller's words.
        task: What a worker is to do.
        skills: The skills that it is told about.
    """

    model: str | None = None
    tools: tuple[object, ...] | None = None
    role: str | None = None
    renderer: str | None = None
    permissions: tuple[str, ...] | None = None
    task: str | None = None
    skills: tuple[str, ...] | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What is to be remembered, as JSON."""
        given = {name: getattr(self, name) for name in KEPT}
        return {
            name: list(each) if isinstance(each, tuple) else each for name, each in given.items() if each is not None
        }

    def over(self, remembered: Mapping[str, Any]) -> dict[str, Any]:
        """Circumstances of a request: what the caller says, else what the session remembers."""
        merged = {name: value for name, value in {**remembered, **self.said}.items() if name in KEPT and value}
        return {name: tuple(each) if isinstance(each, list) else each for name, each in merged.items()}
