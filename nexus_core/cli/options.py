"""Options that several commands have, and those that every command understands, before or after its name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperOption

from nexus_core.values.request import MODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.cli.shell import CommandShell


def model_names(ctx: typer.Context) -> list[str]:
    """The models that are known, for completion."""
    from nexus_core.text.written_secrets import completable_names  # noqa: PLC0415 - only while a name is typed

    with _shell(ctx).nexus() as nexus:
        return sorted(completable_names(name.rstrip("*") for name in nexus.host.models()))


def renderer_names(ctx: typer.Context) -> list[str]:
    """The renderers there are, for completion."""
    from nexus_core.rendering.core import LABELLED  # noqa: PLC0415 - only while somebody is typing

    with _shell(ctx).nexus() as nexus:
        return list(nexus.host.renderers([LABELLED]))


def role_names(ctx: typer.Context) -> list[str]:
    """The roles there are, for completion."""
    from nexus_core.rendering.core import UNIFIED  # noqa: PLC0415 - as above

    with _shell(ctx).nexus() as nexus:
        return list(nexus.host.roles([UNIFIED]))


def dialect_names(ctx: typer.Context) -> list[str]:
    """The dialects there are, for completion."""
    return list(_shell(ctx).dialects().names)


Json = Annotated[bool, typer.Option("--json", help="Print JSON with a versioned schema.")]
Brief = Annotated[bool, typer.Option("--brief", help="The status in one line; with --json, its numbers only.")]
Profile = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="AGENT",
        help="Through whose eyes: nexus, claude, codex or gemini.",
        autocompletion=lambda: ["nexus", "claude", "codex", "gemini"],
    ),
]
RequireTrusted = Annotated[
    bool, typer.Option("--require-trusted", help="Exit with 3 if a project's active settings are not approved.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")]
RendererName = Annotated[
    str,
    typer.Option(
        "--renderer",
        metavar="NAME",
        help="How the request is written: labelled or tagged.",
        autocompletion=renderer_names,
    ),
]
RoleName = Annotated[
    str,
    typer.Option(
        "--role", metavar="NAME", help="The agent's role: unified, manager or worker.", autocompletion=role_names
    ),
]
Task = Annotated[str, typer.Option("--task", metavar="TEXT", help="The worker's task.")]
Skills = Annotated[
    list[str] | None,
    typer.Option("--skill", metavar="NAME", help="A skill the worker is told about; all by default."),
]
ModeName = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="The agent's driver: repl (a person), server (programs).",
        autocompletion=lambda: [*MODES],
    ),
]
Permissions = Annotated[
    list[str] | None,
    typer.Option("--permissions", metavar="TEXT", help="A permission the agent has, in your words; repeatable."),
]
Tools = Annotated[str, typer.Option("--tools", metavar="FILE", help="A list of tools, in the shape of any API.")]
Dialect = Annotated[
    str,
    typer.Option(
        "--dialect",
        metavar="API",
        help="Print the body of that API's call: openai, responses, anthropic, gemini, neutral, or a plugin's.",
        autocompletion=dialect_names,
    ),
]


def model_option(text: str) -> Any:  # noqa: ANN401 - as Typer's own
    """`-m MODEL`, with what it means for a command."""
    return typer.Option("-m", "--model", metavar="MODEL", help=text, autocompletion=model_names)


def shared_options(*, hidden: bool) -> list[TyperOption]:
    """`-C`, `--home`, `--debug` and `--trace-hooks`, for every command; hidden where they would repeat the root's."""
    return [
        _directory(["-C", "--directory"], _set_directory, "Work in DIR instead of the current directory.", hidden),
        _directory(["--home"], _set_home, "Your own directory, instead of NEXUS_HOME or ~/.nexus3.", hidden),
        _switch("--debug", "debug", "Show tracebacks.", hidden=hidden),
        _switch("--trace-hooks", "trace_hooks", "Print every hook call: plugin, time, answers.", hidden=hidden),
    ]


def _directory(names: list[str], callback: Callable[..., None], text: str, hidden: bool) -> TyperOption:
    return TyperOption(
        param_decls=names, type=str, metavar="DIR", callback=callback, expose_value=False, hidden=hidden, help=text
    )


def _switch(flag: str, attribute: str, text: str, *, hidden: bool) -> TyperOption:
    def set_switch(ctx: typer.Context, _param: Any, value: bool) -> None:  # noqa: ANN401 - Typer's own type is private
        if value:
            setattr(_shell(ctx), attribute, True)

    return TyperOption(
        param_decls=[flag],
        type=bool,
        is_flag=True,
        default=False,
        callback=set_switch,
        expose_value=False,
        hidden=hidden,
        help=text,
    )


def _set_directory(ctx: typer.Context, _param: Any, value: str | None) -> None:  # noqa: ANN401 - as above
    if value is None:
        return
    if not os.path.isdir(value):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise typer.BadParameter(f"{value!r} is not a directory")
    _shell(ctx).change_directory(value)


def _set_home(ctx: typer.Context, _param: Any, value: str | None) -> None:  # noqa: ANN401 - as above
    if value is None:
        return
    if not value:
        raise typer.BadParameter("it must name a directory")
    _shell(ctx).home = os.path.expanduser(value)  # noqa: PTH111 - no shell does it in `--home=~/x`


def _shell(ctx: typer.Context) -> CommandShell:
    shell: CommandShell = ctx.find_root().obj
    return shell
