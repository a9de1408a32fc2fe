"""What a Nexus gives its callers: sessions, and calls that are put together without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import UsageError
from nexus_core.session.arguments import read_label
from nexus_core.session.assembling import assemble_for
from nexus_core.session.options import options
from nexus_core.session.requesting import event_of, options_of
from nexus_core.session.thread_reader import ThreadReader
from nexus_core.values.request import Request

if TYPE_CHECKING:
    from typing import Unpack

    from nexus_core.session.drivers import Work
    from nexus_core.session.options import Saying
    from nexus_core.session.pipeline import Pipeline
    from nexus_core.session.place import Place
    from nexus_core.values.assembled import AssembledContext


def open_pipeline(place: Place, label: str, **said: Unpack[Saying]) -> Pipeline:
    """The verbs of a session.

    Args:
        place: Where sessions live.
        label: Its name.
        said: What the caller says about it.

    Raises:
        UsageError: Something is of another kind than it must be.
    """
    from nexus_core.session.pipeline import Pipeline  # noqa: PLC0415 - not for what is not kept
    from nexus_core.session.thread import Thread  # noqa: PLC0415 - as above

    return Pipeline(Thread(place, read_label(label), options(**said)))


def replaying(place: Place, step: str) -> Work[AssembledContext]:
    """What was sent before a reply, of any session."""
    from nexus_core.session.pipeline import Pipeline  # noqa: PLC0415 - not for what is not kept
    from nexus_core.session.thread import Thread  # noqa: PLC0415 - as above

    return Pipeline(Thread(place, "", options())).replay(step)


def assembling(place: Place, request: object, *, must_fit: bool) -> Work[AssembledContext]:
    """What a request is answered with.

    Raises:
        UsageError: It is none, or about another directory.
    """
    if not isinstance(request, Request):
        raise UsageError("expected a Request", hint="nexus.assemble(nexus.request(message=…))")
    if request.cwd != place.cwd:
        raise UsageError(f"this Nexus is about {place.cwd}, not {request.cwd}", hint=f"Nexus({str(request.cwd)!r})")
    thread = ThreadReader(place, request.session, options_of(request), request.mode)
    return assemble_for(thread, event_of(request), must_fit=must_fit)
