"""Optional dependencies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional set of dependencies that a plugin cannot work without.

    A plugin module says `NEEDS = Extra("mcp", modules=("mcp",))`; while one of the modules is not
    installed the plugin is listed as `needs-extra` and its hooks are not called.
    """

    name: str
    modules: tuple[str, ...]
    distribution: str = "nexus-core"

    @property
    def requirement(self) -> str:
        """What to install, as pip understands it."""
        return f"{self.distribution}[{self.name}]"
