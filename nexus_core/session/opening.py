"""What a Nexus gives its callers: sessions, and calls that are put together without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import UsageError
from nexus_core.rendering import find_agent_role
from nexus_core.session.announcing import announce_call
from nexus_core.session.arguments import read_flag, read_label
from nexus_core.session.asking.requesting import event_of, options_of
from nexus_core.session.options import options
from nexus_core.session.thread.assembling import assemble_for
from nexus_core.session.thread.reader import ThreadReader
from nexus_core.types.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Unpack

    from nexus_core.host.manager import Host
    from nexus_core.session.drivers import Work
    from nexus_core.session.options import Saying
    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.place import SessionRuntime
    from nexus_core.session.steps.recorded import RecordedStep
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.compaction import SummarizeFunction
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.request import AgentMode


def open_place(
    host: Host,
    load: Callable[[Path, AgentMode], tuple[Request, LoadedLayers]],
    *,
    cwd: Path,
    home: Path,
    ledger: Callable[[], Ledger],
    summarize: SummarizeFunction | None,
) -> SessionRuntime:
    """What the sessions of a Nexus have in common.

    Args:
        host: The plugins.
        load: Loads what lies in a directory, whatever is known of it.
        cwd: The directory the agent works in.
        home: The user's own Nexus directory.
        ledger: Opens the ledger, or gives the one that is open.
        summarize: The caller's own summarizer.
    """
    from nexus_core.assembly.freshness import FreshLoads
    from nexus_core.assembly.surroundings import Surroundings
    from nexus_core.session.place import SessionRuntime

    surroundings = Surroundings(host, FreshLoads(load))
    return SessionRuntime(cwd=cwd, home=home, host=host, ledger=ledger, surroundings=surroundings, summarize=summarize)


def open_pipeline(
    place: SessionRuntime, label: str, *, any_directory: bool = False, **said: Unpack[Saying]
) -> Pipeline:
    """The verbs of a session.

    Args:
        place: Where sessions live.
        label: Its name.
        any_directory: Whether it may have been used in another directory before.
        said: What the caller says about it.

    Raises:
        UsageError: Something is of another kind than it must be, or nobody offers the role.
        MessageError: One of the tools is none.
    """
    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.thread.thread import SessionThread

    told = options(place.dialects, **said)
    if told.role:
        find_agent_role(place.host, told.role)
    thread = SessionThread(place, read_label(label), told)
    thread.any_directory = read_flag(any_directory, "any_directory")
    return Pipeline(thread)


def replaying(place: SessionRuntime, step: str | RecordedStep | Step) -> Work[AssembledContext]:
    """What was sent before a reply, of any session."""
    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.thread.thread import SessionThread

    return Pipeline(SessionThread(place, "", options(place.dialects))).replay(step)


def assembling(place: SessionRuntime, request: object, *, must_fit: bool, announce: bool) -> Work[AssembledContext]:
    """What a request is answered with.

    Args:
        place: Where sessions live.
        request: The request.
        must_fit: Whether it is an error if it does not fit; whoever takes it as it is only looks.
        announce: Whether plugins are told of it, because it is meant to be sent.

    Raises:
        UsageError: It is none, or about another directory.
    """
    if not isinstance(request, Request):
        raise UsageError("expected a Request", hint="nexus.assemble(nexus.request(message=…))")
    if request.cwd != place.cwd:
        raise UsageError(f"this Nexus is about {place.cwd}, not {request.cwd}", hint=f"Nexus({str(request.cwd)!r})")
    thread = ThreadReader(place, request.session, options_of(request, place.dialects))
    return _announced(
        place, assemble_for(thread, event_of(request, place.dialects), must_fit=must_fit), announce and must_fit
    )


def _announced(place: SessionRuntime, work: Work[AssembledContext], announce: bool) -> Work[AssembledContext]:
    context = yield from work
    if announce:
        yield from announce_call(place.host, context)
    return context
