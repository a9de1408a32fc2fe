"""Tells plugins that watch what has happened; without any, nobody waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.session.drivers import wait

if TYPE_CHECKING:
    from nexus_core.host.manager import Host
    from nexus_core.session.drivers import Work
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Usage


def announce_call(host: Host, context: AssembledContext) -> Work[None]:
    """Tell them of a call that is about to be sent."""
    if host.listens("nexus_call_assembled"):
        yield from wait(host.assembled, context)


def announce_step(host: Host, step: Step, session: str, usage: Usage | None, cache: CacheReport) -> Work[None]:
    """Tell them of a step that is in the ledger; no transaction is open meanwhile.

    Args:
        host: The plugins.
        step: The step.
        session: The name of the session.
        usage: What the call cost that it answers.
        cache: What became of the provider's cache in that.
    """
    if host.listens("nexus_step_recorded"):
        yield from wait(host.recorded, step, session, usage, cache)
