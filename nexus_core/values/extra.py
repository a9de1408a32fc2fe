"""Optional dependencies."""

from __future__ import annotations

from nexus_core.values.checks import require_type, require_words
from nexus_core.values.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional set of dependencies that a plugin cannot work without.

    A plugin module says `NEEDS = Extra("mcp", modules=("mcp",))`; while one of the modules is not
    installed the plugin is listed as `needs-extra` and its hooks are not called.
    """

    name: str
    modules: tuple[str, ...]
    distribution: str = "nexusctx"

    def __post_init__(self) -> None:
        require_words(self.name, "Extra.name")
        require_type(self.modules, "Extra.modules", tuple)  # a bare string would be taken letter by letter
        for module in self.modules:
            require_words(module, "Extra.modules")
        require_words(self.distribution, "Extra.distribution")

    @property
    def requirement(self) -> str:
        """What to install, as pip understands it."""
        return f"{self.distribution}[{self.name}]"
