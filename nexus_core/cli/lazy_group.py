"""Command groups that list commands without importing them."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from typer import Typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from nexus_core.cli.aliases import add_aliases
from nexus_core.cli.context import redirect_plugin_output
from nexus_core.cli.options import build_global_options
from nexus_core.errors import PluginError, UnknownNameError, UsageError
from nexus_core.host.calls import describe_exception
from nexus_core.host.discovery import OWN_DISTRIBUTION
from nexus_core.text.safety import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typer._click import Command as ClickCommand  # private, but it is what the methods we override are typed with
    from typer._click import Context

    from nexus_core.cli.context import CliContext
    from nexus_core.types.plugins import Command

    ResolveCommand = Callable[[Context, list[str]], tuple[str | None, ClickCommand | None, list[str]]]

PAGED_COMMANDS = frozenset(
    {
        "assemble",
        "check",
        "config show",
        "context",
        "diff",
        "doctor",
        "explain",
        "layers",
        "ledger verify",
        "mcp list",
        "mcp tools",
        "memory list",
        "memory search",
        "memory show",
        "memory why",
        "plugin hooks",
        "plugin info",
        "plugin list",
        "session list",
        "session replay",
        "session search",
        "session show",
        "session stats",
        "session tree",
        "show",
        "skill list",
        "skill show",
        "tokens",
        "trust diff",
        "trust status",
    }
)
"""Commands that only print, whose long output goes to a pager."""
_COMPLETION_PARAMS = {"install_completion", "show_completion"}
"""Parameters that Typer adds to each application. Only `nexus` itself installs completion."""


class LazyGroup(TyperGroup):
    """A group with a table of commands, which imports only the one that runs.

    Attributes:
        core: The commands by their names, in the order of the help page.
        path: The words between `nexus` and a command; "" for the root.
    """

    core: ClassVar[Mapping[str, Command]] = {}
    path: ClassVar[str] = ""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the signature is Typer's
        """Return the names of the commands, in the order of the table."""
        return [*self.core]

    def get_help(self, ctx: Context) -> str:
        """Return the help page, escaped, because some of its lines are a plugin's."""
        return visible(super().get_help(ctx))

    def get_command(self, ctx: Context, cmd_name: str) -> ClickCommand | None:
        """Return a placeholder with name and help line, enough for `--help` and completion."""
        command, _ = self.find_command(ctx, cmd_name)
        if command is None:
            return None
        return TyperCommand(
            command.name, help=command.help, short_help=command.help, hidden=command.hidden, rich_markup_mode=None
        )

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, ClickCommand | None, list[str]]:
        """Import the command that was named, and return it with the arguments behind its name."""
        name, rest = args[0], args[1:]
        command, plugin = self.find_command(ctx, name)
        if command is not None:
            return name, load_command(command, plugin, self.path), rest
        if ctx.resilient_parsing:  # completion asks about half-typed names
            return None, None, rest
        raise self.unknown_command(ctx, name)

    def find_command(self, ctx: Context, name: str) -> tuple[Command | None, str]:  # noqa: ARG002 - a subclass needs it
        """Return the command of that name, or None, and the plugin it comes from."""
        return self.core.get(name), OWN_DISTRIBUTION

    def unknown_command(self, ctx: Context, name: str) -> UsageError:
        """Return the error for a name that no command has. It suggests an option of that name, and nothing hidden."""
        options = {option for param in self.get_params(ctx) for option in param.opts}
        if f"--{name}" in options:
            return UsageError(f"unknown command {name!r}", hint=f"did you mean '--{name}'?")
        commands = {each: self.find_command(ctx, each)[0] for each in self.list_commands(ctx)}
        return UnknownNameError(
            "command", name, [each for each, found in commands.items() if found and not found.hidden]
        )


def load_command(command: Command, plugin: str, path: str = "") -> ClickCommand:
    """Import the Typer application of a command and return the command.

    Args:
        command: The command.
        plugin: The plugin it comes from, for errors.
        path: As in `LazyGroup`. An application of a group below the root may have several commands of that group.

    Raises:
        PluginError: It cannot be imported, or is not a Typer application.
    """
    module, _, attribute = command.target.partition(":")
    try:
        with redirect_plugin_output():
            app = getattr(import_module(module), attribute)
            loaded = get_command(app) if isinstance(app, Typer) else None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        what = f"its command {command.name!r} ({command.target}) {describe_exception(error)} while it was loaded"
        raise PluginError(what, plugin=plugin) from error
    if loaded is None:
        what = f"its command {command.name!r} ({command.target}) is of type {type(app).__name__}"
        raise PluginError(f"{what}, expected a typer.Typer", plugin=plugin)
    if path and isinstance(loaded, TyperGroup):
        loaded = loaded.commands[command.name]
    _adapt_command(loaded, f"{path} {command.name}".lstrip())
    return loaded


def _adapt_command(command: ClickCommand, path: str) -> None:
    """Add shared options and plain help to a command and its subcommands, without completion flags.

    Methods are replaced in the objects: `cls=LazyGroup` would not do, because a plugin chooses the classes of its
    application, of the groups in it and of their commands.

    Args:
        command: The command or group.
        path: The words behind `nexus` that lead to it.
    """
    command.params = [param for param in command.params if param.name not in _COMPLETION_PARAMS]
    taken = {option for param in command.params for option in param.opts}
    command.params += [option for option in build_global_options(hidden=True) if not taken.intersection(option.opts)]
    if isinstance(command, TyperCommand | TyperGroup):
        command.rich_markup_mode = None
    for param in command.params:
        if isinstance(param, TyperArgument) and param.required:
            param.get_usage_pieces = partial(_list_usage, param)  # type: ignore[method-assign]
    get_help = command.get_help  # its text is a plugin's
    command.get_help = lambda ctx: visible(get_help(ctx))  # type: ignore[method-assign]
    if isinstance(command, TyperGroup):
        if type(command).resolve_command is TyperGroup.resolve_command:
            resolve = partial(_resolve_known_command, command, command.resolve_command)
            command.resolve_command = resolve  # type: ignore[method-assign]
        for name, child in command.commands.items():
            _adapt_command(child, f"{path} {name}")
    elif path in PAGED_COMMANDS:
        command.invoke = partial(_invoke_paged, command.invoke)  # type: ignore[method-assign]
    add_aliases(command, path)


def _resolve_known_command(
    group: TyperGroup, resolve: ResolveCommand, ctx: Context, args: list[str]
) -> tuple[str | None, ClickCommand | None, list[str]]:
    """Resolve a command of a group. The error for an unknown one is that of a `LazyGroup`."""
    normalize = ctx.token_normalize_func
    names = {args[0], normalize(args[0])} if normalize else {args[0]}
    is_known = any(group.get_command(ctx, name) is not None for name in names)
    if ctx.resilient_parsing or args[0].startswith("-") or is_known:
        return resolve(ctx, args)
    raise UnknownNameError("command", args[0], [name for name, each in group.commands.items() if not each.hidden])


def _invoke_paged(invoke: Callable[[Context], object], ctx: Context) -> object:
    cli: CliContext = ctx.find_root().obj
    with cli.paged():
        return invoke(ctx)


def _list_usage(argument: TyperArgument, ctx: Context) -> list[str]:
    """Return a required argument for the usage line, without Typer's braces, which read as a choice."""
    return [argument.make_metavar(ctx)]
