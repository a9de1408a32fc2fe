"""Facts about plugins: who they are, what they answer, what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["active", "disabled", "failed", "needs-extra"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """One row of `nexus plugins list`."""

    name: str
    distribution: str
    version: str
    bundled: bool
    status: Status
    hooks: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something a plugin did wrong and the run went on without.

    Attributes:
        plugin: The culprit.
        hook: The hook it was answering, None while it was being loaded.
        message: What happened and what follows from it, in one sentence.
        cause: The exception behind it, if there was one.
    """

    plugin: str
    hook: str | None
    message: str
    cause: BaseException | None = None

    def __str__(self) -> str:
        where = f", {self.hook}" if self.hook else ""
        return f"plugin {self.plugin!r}{where}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One plugin's answer to one hook, as `--trace-hooks` prints it."""

    hook: str
    plugin: str
    seconds: float
    answers: int
    failed: bool = False
