"""Who summarises: those whom the settings name, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.compaction.extractive import extractive_summariser
from nexus_core.values.compaction import Summariser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.host.host import Host
    from nexus_core.values.compaction import Summarize
    from nexus_core.values.loaded import Loaded

GIVEN = "given"
"""The name of the function that the caller gave to `Nexus(summarize=…)`."""


def find_summarisers(
    host: Host,
    loaded: Loaded,
    names: Sequence[str],
    *,
    given: Summarize | None = None,
    count: Callable[[str], int],
) -> list[Summariser]:
    """The chain of summarisers to ask.

    Args:
        host: The plugins that offer some.
        loaded: Layers and settings.
        names: Who is asked, in which order; `given` is passed over where nobody gave anything.
        given: The caller's own.
        count: Who counts, for the one that needs no model.

    Raises:
        UnknownNameError: There is none of that name.
    """
    core = [extractive_summariser(count)]
    if given is not None:
        core.append(Summariser(name=GIVEN, summarise=given))
    registry = host.summarisers(loaded, core, reserved=(GIVEN,))
    return [registry.get(name) for name in dict.fromkeys(names) if name != GIVEN or given is not None]
