"""Commands that are listed without being imported, and imported when they run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from typer import Typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from nexus_core.cli.options import shared_options
from nexus_core.cli.shell import plugins_at_work
from nexus_core.errors import NexusError, PluginError, UnknownNameError, UsageError
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.candidates import OWN_DISTRIBUTION
from nexus_core.host.implementation import describe
from nexus_core.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typer._click import Command as ClickCommand  # private, but it is what the methods we override are typed with
    from typer._click import Context

    from nexus_core.cli.shell import CommandShell
    from nexus_core.host.registry import Registry
    from nexus_core.values.command import Command

_COMMANDS = "nexus.commands"
_COMPLETION = {"install_completion", "show_completion"}


class LazyGroup(TyperGroup):
    """A group whose commands come from a table, then from plugins; only the one that runs is imported."""

    core: ClassVar[Mapping[str, Command]] = {}

    def list_commands(self, ctx: Context) -> list[str]:
        """Core commands in their own order, then those of plugins, sorted."""
        try:
            known = list(self._all_commands(ctx))
        except NexusError as error:  # the help page is most wanted when something is broken
            ctx.find_root().obj.console.warning(str(error))
            known = []
        return [*self.core, *(name for name in known if name not in self.core)]

    def get_help(self, ctx: Context) -> str:
        """The help page; some of its lines are a plugin's."""
        return visible(super().get_help(ctx))

    def get_command(self, ctx: Context, cmd_name: str) -> ClickCommand | None:
        """A stand-in with the name and the help line: enough for `--help` and completion."""
        command, _ = self._find(ctx, cmd_name)
        return None if command is None else TyperCommand(command.name, help=command.help, rich_markup_mode=None)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, ClickCommand | None, list[str]]:
        """The command itself, imported now."""
        name, rest = args[0], args[1:]
        command, plugin = self._find(ctx, name)
        if command is not None:
            return name, load_command(command, plugin), rest
        if ctx.resilient_parsing:  # completion asks about half-typed names
            return None, None, rest
        if owner := _bundled_owner(name):
            what = f"the command {name!r} belongs to the plugin {owner!r}, which is not active"
            raise UsageError(what, hint=f"nexus plugins info {owner}")
        raise UnknownNameError("command", name, self.list_commands(ctx))

    def _find(self, ctx: Context, name: str) -> tuple[Command | None, str]:
        """The command of that name, if there is one, and the plugin it comes from."""
        if name in self.core:
            return self.core[name], OWN_DISTRIBUTION
        commands = self._all_commands(ctx)
        return (commands.get(name), commands.owner(name)) if name in commands else (None, "")

    def _all_commands(self, ctx: Context) -> Registry[Command]:
        # Asked for once per run, and only when no core command answers.
        root = ctx.find_root()
        if _COMMANDS not in root.meta:
            shell: CommandShell = root.obj
            with shell.nexus() as nexus:
                root.meta[_COMMANDS] = nexus.host.commands(self.core.values())
        commands: Registry[Command] = root.meta[_COMMANDS]
        return commands


def _bundled_owner(name: str) -> str | None:
    """The bundled plugin that has a command of that name when it is active."""
    for candidate in BUNDLED:
        answer: Any = candidate.constants.get("nexus_commands", tuple)()
        if name in {command.name for command in answer}:
            return candidate.name
    return None


def load_command(command: Command, plugin: str) -> ClickCommand:
    """Import the Typer application of a command of a plugin and make it one of ours."""
    module, _, attribute = command.target.partition(":")
    try:
        with plugins_at_work():
            app = getattr(import_module(module), attribute)
            loaded = get_command(app) if isinstance(app, Typer) else None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        what = f"its command {command.name!r} ({command.target}) {describe(error)} while it was loaded"
        raise PluginError(what, plugin=plugin) from error
    if loaded is None:
        what = f"its command {command.name!r} ({command.target}) is of type {type(app).__name__}"
        raise PluginError(f"{what}, expected a typer.Typer", plugin=plugin)
    _adopt(loaded)
    return loaded


def _adopt(command: ClickCommand) -> None:
    """Give a command and its subcommands the shared options, plain help, and no completion flags of their own."""
    command.params = [param for param in command.params if param.name not in _COMPLETION]
    taken = {option for param in command.params for option in param.opts}
    command.params += [option for option in shared_options(hidden=True) if not taken.intersection(option.opts)]
    if isinstance(command, TyperCommand | TyperGroup):
        command.rich_markup_mode = None
    get_help = command.get_help
    command.get_help = lambda ctx: visible(get_help(ctx))  # type: ignore[method-assign] # its text is a plugin's
    if isinstance(command, TyperGroup):
        for child in command.commands.values():
            _adopt(child)
