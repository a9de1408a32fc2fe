"""A writer that is made when somebody asks for the shape of an API: what it takes for that is not needed before."""

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
    """Puts contexts into the shapes of APIs, as the settings want it.

    Attributes:
        model: What is known of the model that the contexts are for.
        find_model: What is known of another one, by its name.
        settings: What the user and the project set.
        dialects: The shapes that there are.
    """

    model: Model
    find_model: Callable[[str], Model]
    settings: Settings
    dialects: DialectRegistry

    def write(self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool) -> dict[str, Any]:
        """The arguments of the SDK's call."""
        return self._build_writer().write(context, api, options, cache=cache)

    def plan(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool
    ) -> tuple[Breakpoint, ...]:
        """What the provider is told to keep in its cache."""
        return self._build_writer().plan(context, api, options, cache=cache)

    def _build_writer(self) -> CallWriter:
        from nexus_core.request.write import build_writer

        return build_writer(self.model, self.find_model, self.settings, self.dialects)
