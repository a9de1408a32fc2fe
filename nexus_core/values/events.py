"""What happens while plugins are at work."""

from __future__ import annotations

from nexus_core.values.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something a plugin did wrong and the run went on without.

    Attributes:
        plugin: The culprit.
        hook: The hook it was answering, None while it was being loaded.
        message: What happened and what follows from it, in one sentence.
        cause: The exception behind it, if there was one.
    """

    plugin: str
    hook: str | None
    message: str
    cause: BaseException | None = None

    def __str__(self) -> str:
        where = f", {self.hook}" if self.hook else ""
        return f"plugin {self.plugin}{where}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One plugin's answer to one hook, as `--trace-hooks` prints it; `answers` is None where none is asked for."""

    hook: str
    plugin: str
    seconds: float
    answers: int | None
    failed: bool = False
