"""Who summarises: those whom the settings name, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.compaction.extractive import extractive_summarizer
from nexus_core.types.compaction import Summarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.host.manager import Host
    from nexus_core.types.compaction import SummarizeFunction
    from nexus_core.types.layers import LoadedLayers

GIVEN = "given"
"""The name of the function that the caller gave to `Nexus(summarize=…)`."""


def find_summarizers(
    host: Host,
    loaded: LoadedLayers,
    names: Sequence[str],
    *,
    given: SummarizeFunction | None = None,
    count: Callable[[str], int],
) -> list[Summarizer]:
    """The chain of summarizers to ask.

    Args:
        host: The plugins that offer some.
        loaded: Layers and settings.
        names: Who is asked, in which order; `given` is passed over where nobody gave anything.
        given: The caller's own.
        count: Who counts, for the one that needs no model.

    Raises:
        UnknownNameError: There is none of that name.
    """
    core = [extractive_summarizer(count)]
    if given is not None:
        core.append(Summarizer(name=GIVEN, summarise=given))
    registry = host.summarizers(loaded, core, reserved=(GIVEN,))
    return [registry.get(name) for name in dict.fromkeys(names) if name != GIVEN or given is not None]
