"""Decides what happens when a plugin misbehaves: name it and go on, or stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.host.candidates import Candidate
    from nexus_core.values.events import Problem


class Blame:
    """Keeps the problems of a run and reports each of them once.

    Args:
        strict: Whether every problem stops the run; those of bundled plugins always do.
        report: Called with each new problem; the log is told when it is None.
    """

    def __init__(self, *, strict: bool, report: Callable[[Problem], None] | None) -> None:
        self._strict = strict
        self._report = report or _log
        self._problems: dict[str, Problem] = {}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong so far, in order."""
        return tuple(self._problems.values())

    def put_on(
        self,
        candidate: Candidate,
        message: str,
        *,
        consequence: str,
        hook: str | None = None,
        cause: BaseException | None = None,
        is_harmless: bool = False,
    ) -> None:
        """Report a problem and its consequence once, or raise a PluginError where going on would be wrong.

        Args:
            candidate: The culprit.
            message: What it did.
            consequence: What follows from it.
            hook: The hook it was answering.
            cause: The exception behind it.
            is_harmless: Whether nothing depends on it, so that a bundled plugin may fail as well.
        """
        if self._strict or (candidate.is_bundled and not is_harmless):
            raise PluginError(message, plugin=candidate.label, hook=hook) from cause
        self.note(candidate.label, f"{consequence}, because {message}", hook=hook, cause=cause)

    def note(self, plugin: str, message: str, *, hook: str | None = None, cause: BaseException | None = None) -> None:
        """Report a problem that is nobody's exception, such as a name taken twice; fatal in a strict run."""
        if self._strict:
            raise PluginError(message, plugin=plugin, hook=hook) from cause
        from nexus_core.values.events import Problem  # noqa: PLC0415 - a run without problems does not need it

        problem = Problem(plugin=plugin, hook=hook, message=message, cause=cause)
        if str(problem) not in self._problems:
            self._problems[str(problem)] = problem
            self._report(problem)


def _log(problem: Problem) -> None:
    import logging  # noqa: PLC0415 - only a run with a problem pays for it

    logging.getLogger("nexus_core").warning("%s", problem)
