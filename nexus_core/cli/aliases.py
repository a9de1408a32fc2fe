"""Other names of commands and options: synonyms, and old names that work for one more release.

Names in these tables are in no help page and are not completed. Commands are named by the words behind `nexus`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup, TyperOption

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typer._click import Command as ClickCommand  # private, but it is what the methods we wrap are typed with
    from typer._click import Context

SYNONYMS: Mapping[str, str] = {"prompt": "show", "request": "assemble"}
"""Second names that stay."""
OLD_COMMANDS: Mapping[str, str] = {
    "mcp pin": "mcp approve",
    "plugin check": "plugin test",
    "plugins": "plugin",
    "plugins check": "plugin test",
    "session archive --undo": "session unarchive",
    "session copy": "ledger copy",
    "session expand": "session show --compacted",
    "session pin --remove": "session unpin",
    "session repair": "ledger repair",
    "session undo": "session compact --undo",
    "session verify": "ledger verify",
    "skill use": "skill show",
}
"""Old commands, or one of their flags, and the words to use now; options among these go to the new command."""
OLD_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "assemble": {"--dialect": "--api"},
    "context": {"--all": "--include-compacted", "--top": "--limit"},
    "diff": {"--check": "--exit-code"},
    "mcp export": {"--to": "--format"},
    "session import": {"--label": "--name"},
    "session list": {"--all": "--include-archived"},
    "session record": {"--as": "--role", "--to": "--api"},
    "session replay": {"--dialect": "--api"},
    "session show": {"--all": "--limit all", "--turns": "--limit"},
    "session tree": {"--all": "--limit all"},
}
"""By command, the old options and the ones to use now; `--limit all` is an option with a fixed value."""


def add_aliases(command: ClickCommand, path: str) -> None:
    """Make a command accept its old options, and a group the other names of its commands.

    Args:
        command: The command or group.
        path: The words behind `nexus` that lead to it; "" for `nexus` itself.
    """
    command.params += [_build_old_option(command, old, new) for old, new in OLD_OPTIONS.get(path, {}).items()]
    if isinstance(command, TyperGroup):
        _wrap_resolve_command(command, path)


def _wrap_resolve_command(group: TyperGroup, path: str) -> None:
    resolve, group_words = group.resolve_command, path.split()

    def resolve_command(ctx: Context, args: list[str]) -> tuple[str | None, ClickCommand | None, list[str]]:
        synonym = SYNONYMS.get(f"{path} {args[0]}".lstrip())
        if synonym is not None:
            return _follow(ctx, synonym.split(), args[1:])
        for old in sorted(OLD_COMMANDS, key=len, reverse=True):  # `plugins check` before `plugins`: one hint, not two
            name, _, flag = old.partition(" --")
            words = name.split()
            count = len(words) - len(group_words)
            is_typed = count > 0 and words == [*group_words, *args[:count]]
            if is_typed and (not flag or f"--{flag}" in _options(args)):
                warn_old_name(ctx, f"nexus {old}", f"nexus {OLD_COMMANDS[old]}")
                rest = [each for each in args[count:] if not flag or each != f"--{flag}"]
                return _follow(ctx, OLD_COMMANDS[old].split(), rest)
        return resolve(ctx, args)

    group.resolve_command = resolve_command  # type: ignore[method-assign] # also for groups that plugins made


def _options(args: list[str]) -> list[str]:
    """Return the arguments before `--`."""
    return args[: args.index("--")] if "--" in args else args


def _follow(ctx: Context, words: list[str], rest: list[str]) -> tuple[str | None, ClickCommand | None, list[str]]:
    """Return the command that words behind `nexus` lead to, and its arguments."""
    root = ctx.find_root()
    command: ClickCommand | None = root.command
    names: list[str] = []
    while words and isinstance(command, TyperGroup):
        name, command, words = command.resolve_command(root, words)
        names += [name] if name else []
    # From the root, the groups on the way belong to the name in usage lines and hints.
    return " ".join(names if ctx is root else names[-1:]) or None, command, [*words, *rest]


def _build_old_option(command: ClickCommand, old: str, new: str) -> TyperOption:
    """Return a hidden option that passes its value to its replacement, unless that is given too."""
    name, _, fixed = new.partition(" ")
    (param,) = (each for each in command.params if name in each.opts)
    is_flag = bool(fixed) or bool(getattr(param, "is_flag", False))

    def pass_on(ctx: Context, _param: object, value: Any) -> None:  # noqa: ANN401 - whatever the option takes
        if value is None or value is False or value == ():
            return
        warn_old_name(ctx, old, new)
        ctx.default_map = {**(ctx.default_map or {}), str(param.name): fixed or value}

    return TyperOption(
        param_decls=[f"old_{old.strip('-').replace('-', '_')}", old],
        type=bool if is_flag else str,
        is_flag=is_flag,
        default=False if is_flag else None,
        multiple=bool(getattr(param, "multiple", False)),
        callback=pass_on,
        expose_value=False,
        is_eager=True,  # before the new option looks for its default
        hidden=True,
    )


def warn_old_name(ctx: Context, old: str, new: str, *others: str) -> None:
    """Warn on standard error of an old name, except while completing.

    Args:
        ctx: The command.
        old: The old name.
        new: The new name.
        others: Descriptions of what else the old name could mean.
    """
    if not ctx.resilient_parsing:
        ctx.find_root().obj.console.warning(f"`{old}` is deprecated, use {', or '.join([f'`{new}`', *others])}")
