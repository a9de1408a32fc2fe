"""LazyWriter: imports and builds a CallWriter when a call is first written for an API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.request.write import CallWriter
    from nexus_core.types.assembled import AssembledContext, Breakpoint
    from nexus_core.types.budget import Model
    from nexus_core.types.settings import Settings


class LazyWriter(NamedTuple):
    """Writes calls in the format of an API, by the settings.

    Attributes:
        model: The model that the calls were assembled for.
        find_model: Returns another model by its name.
        settings: Settings of the user and the project.
        dialects: The API dialects.
    """

    model: Model
    find_model: Callable[[str], Model]
    settings: Settings
    dialects: DialectRegistry

    def write(self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool) -> dict[str, Any]:
        """Return the arguments of the SDK's call; see `CallWriter.write`."""
        return self._build_writer().write(context, api, options, cache=cache)

    def plan(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool
    ) -> tuple[Breakpoint, ...]:
        """Return the cache breakpoints of a call; see `CallWriter.plan`."""
        return self._build_writer().plan(context, api, options, cache=cache)

    def _build_writer(self) -> CallWriter:
        from nexus_core.request.write import build_writer

        return build_writer(self.model, self.find_model, self.settings, self.dialects)
