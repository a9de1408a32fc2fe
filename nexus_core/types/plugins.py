"""Plugin information, commands, toolsets, extras, findings, problems and hook calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from nexus_core.types.base import dataclass, require_text, require_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

PluginStatus = Literal["active", "disabled", "failed", "needs-extra"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """One row of `nexus plugin list`."""

    name: str
    distribution: str
    version: str
    bundled: bool
    status: PluginStatus
    hooks: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional set of dependencies that a plugin cannot work without.

    A plugin module declares `NEEDS = Extra("mcp", modules=("mcp",))`. While one of the modules is not installed, the
    plugin is listed as `needs-extra` and its hooks are not called.
    """

    name: str
    modules: tuple[str, ...]
    distribution: str = "nexusctx"

    def __post_init__(self) -> None:
        require_text(self.name, "Extra.name")
        require_type(self.modules, "Extra.modules", tuple)  # a bare string would be iterated by character
        for module in self.modules:
            require_text(module, "Extra.modules")
        require_text(self.distribution, "Extra.distribution")

    @property
    def requirement(self) -> str:
        """The requirement to install with pip."""
        return f"{self.distribution}[{self.name}]"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `nexus` that is listed without importing it.

    Attributes:
        name: The word typed after `nexus`: lower case letters, digits and hyphens, starting with a letter.
        help: One line for the list of commands.
        target: The `typer.Typer` to load when the command runs, as `package.module:attribute`.
        hidden: True to leave the command out of help pages and shell completion. It works all the same.
    """

    name: str
    help: str
    target: str
    hidden: bool = False

    def __post_init__(self) -> None:
        for field in ("name", "help", "target"):
            require_type(getattr(self, field), f"Command.{field}", str)
        require_type(self.hidden, "Command.hidden", bool)
        is_word = self.name[:1].isalpha() and self.name.replace("-", "_").isidentifier()
        if not is_word or self.name != self.name.lower():
            raise ValueError(f"Command.name must be lower case letters, digits and hyphens, not {self.name!r}")
        module, _, attribute = self.target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), attribute)):
            raise ValueError(f"Command.target must look like 'package.module:attribute', not {self.target!r}")


@dataclass(frozen=True, slots=True)
class Toolset:
    """What runs the tools that a plugin offers with `nexus_tools`.

    Attributes:
        name: Its name.
        open: Takes the `Nexus` that an agent belongs to, and returns a context manager whose value runs the tools: it
            has `__contains__(name)`, `run(call)` and maybe `risk`. Called when a model first calls a tool; nothing is
            started or connected to before.
    """

    name: str
    open: Callable[[Any], AbstractContextManager[Any]]

    def __post_init__(self) -> None:
        require_text(self.name, "Toolset.name")
        if not callable(self.open):
            raise TypeError(f"Toolset.open must be a function, not of type {type(self.open).__name__}")


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic about a file, a message or a step, with a code to look up.

    Attributes:
        code: A stable name: `protected-setting`, `hidden-characters`.
        message: The problem and its consequence, one sentence without a final period.
        path: The file.
        line: The line in the file; 0 for the whole file.
        column: The column in the line; 0 if unknown.
        index: The index of the message in its list, from 0.
        step: The id of the step in a ledger.
        is_note: True for information only: it is not a problem, and no check fails because of it.
    """

    code: str
    message: str
    path: Path | None = None
    line: int = 0
    column: int = 0
    index: int | None = None
    step: str = ""
    is_note: bool = False

    @property
    def place(self) -> str:
        """The file as `path:line:column`, which editors open, and the message; "" if there is neither."""
        file = ":".join([str(self.path or ""), *(str(number) for number in (self.line, self.column) if number)])
        message = "" if self.index is None else f"message {self.index}"
        return ", ".join(filter(None, (file, message)))

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.code}]" if self.place else f"{self.message} [{self.code}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error of a plugin that did not stop the run.

    Attributes:
        plugin: The name of the plugin.
        hook: The hook that was called; None if loading the plugin failed.
        message: The error and its consequence, in one sentence.
        cause: The exception, if there was one.
    """

    plugin: str
    hook: str | None
    message: str
    cause: BaseException | None = None

    def __str__(self) -> str:
        where = f", {self.hook}" if self.hook else ""
        return f"plugin {self.plugin}{where}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """One call of a plugin's hook, as `--trace-hooks` prints it.

    Attributes:
        hook: The name of the hook.
        plugin: The name of the plugin.
        seconds: The duration of the call.
        answers: The number of results; None for hooks that only announce something.
        failed: True if the hook raised an error.
    """

    hook: str
    plugin: str
    seconds: float
    answers: int | None
    failed: bool = False
