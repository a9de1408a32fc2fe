"""Options of several commands, and the global options of every command."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperOption

from nexus_core.errors import UsageError
from nexus_core.layers import OWN_PROFILE
from nexus_core.types.request import AGENT_MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.cli.context import CliContext


def list_model_names(ctx: typer.Context) -> list[str]:
    """Return the models that are known, for completion."""
    from nexus_core.text.secrets import completable_names

    with _get_cli_context(ctx).nexus() as nexus:
        return sorted(completable_names(name.rstrip("*") for name in nexus.host.models()))


def list_renderer_names(ctx: typer.Context) -> list[str]:
    """Return the renderers there are, for completion."""
    from nexus_core.rendering import LABELLED_RENDERER

    with _get_cli_context(ctx).nexus() as nexus:
        return list(nexus.host.renderers([LABELLED_RENDERER]))


def list_role_names(ctx: typer.Context) -> list[str]:
    """Return the roles there are, for completion."""
    from nexus_core.rendering import UNIFIED_ROLE

    with _get_cli_context(ctx).nexus() as nexus:
        return list(nexus.host.roles([UNIFIED_ROLE]))


def list_dialect_names(ctx: typer.Context) -> list[str]:
    """Return the dialects there are, for completion."""
    return list(_get_cli_context(ctx).dialects().names)


def list_agent_names() -> list[str]:
    """Return the agents that `--as` knows, for completion."""
    from nexus_core.layers.agent_profiles import PROFILES

    return [OWN_PROFILE, *PROFILES]


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with a versioned schema.")]
BriefOption = Annotated[bool, typer.Option("--brief", help="Print one line; with --json, only numbers.")]
AgentOption = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="AGENT",
        help="Show what another agent reads: claude, codex, cursor, …",
        autocompletion=list_agent_names,
    ),
]
AgentFileOption = Annotated[
    list[str] | None,
    typer.Option("--file", metavar="PATH", help="With --as, add the agent's rules for this file; repeatable."),
]
FacetOption = Annotated[
    list[str],
    typer.Option("--facet", metavar="FACET", help="Only rule, decision, rejected, file, command, error; repeatable."),
]
RequireTrustedOption = Annotated[
    bool, typer.Option("--require-trusted", help="Exit with 3 if a project's active settings are not approved.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]
WithSecretsOption = Annotated[bool, typer.Option("--with-secrets", help="Print keys, tokens and passwords, too.")]
FullOption = Annotated[bool, typer.Option("--full", help="Print long texts and results in full.")]
RawOption = Annotated[bool, typer.Option("--raw", help="Print Markdown as it is written, on a terminal, too.")]
RendererOption = Annotated[
    str,
    typer.Option(
        "--renderer",
        metavar="NAME",
        help="Write the request in this form: labelled or tagged.",
        autocompletion=list_renderer_names,
    ),
]
RoleOption = Annotated[
    str,
    typer.Option(
        "--role",
        metavar="NAME",
        help="Give the agent this role: unified, manager or worker.",
        autocompletion=list_role_names,
    ),
]
ProviderOption = Annotated[
    str, typer.Option("--provider", metavar="NAME", help="Call this provider; provider.provider by default.")
]
LevelOption = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="Tighten the permission level: trusted or sandboxed.",
        autocompletion=lambda: ["trusted", "sandboxed"],
    ),
]
TaskOption = Annotated[str, typer.Option("--task", metavar="TEXT", help="Give the worker this task.")]
SkillOption = Annotated[
    list[str] | None,
    typer.Option("--skill", metavar="NAME", help="Offer this skill to the worker; repeatable, all by default."),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="Say who drives the agent: repl (a person) or server (programs).",
        autocompletion=lambda: [*AGENT_MODES],
    ),
]
PermissionsOption = Annotated[
    list[str] | None,
    typer.Option("--permissions", metavar="TEXT", help="Grant this permission, in your words; repeatable."),
]
ToolsOption = Annotated[
    str, typer.Option("--tools", metavar="FILE", help="Offer the tools of FILE, in the format of any API.")
]
ApiOption = Annotated[
    str,
    typer.Option(
        "--api",
        metavar="API",
        help="Print the request body of this API: openai, responses, anthropic, gemini, neutral or a plugin's.",
        autocompletion=list_dialect_names,
    ),
]


ALL_ITEMS = sys.maxsize
"""The value of `--limit all`."""


def build_limit_option(text: str) -> Any:  # noqa: ANN401 - as Typer's own
    """Return the option `-n N`, where N may be `all`, with its help text."""
    return typer.Option("-n", "--limit", metavar="N|all", help=text, parser=_parse_limit)


def _parse_limit(value: str | int) -> int:
    if value == "all":
        return ALL_ITEMS
    try:
        limit = int(value)
    except ValueError:
        limit = -1
    if limit < 0:
        raise typer.BadParameter(f"{value!r} is not in the range: a number of at least 0, or all")
    return limit


def build_model_option(text: str) -> Any:  # noqa: ANN401 - as Typer's own
    """Return the option `-m MODEL` with its help text."""
    return typer.Option("-m", "--model", metavar="MODEL", help=text, autocompletion=list_model_names)


def build_global_options(*, hidden: bool) -> list[TyperOption]:
    """Return `-C`, `--home`, `--no-pager`, `--debug` and `--trace-hooks`, hidden below the root command."""
    return [
        _build_directory_option(
            ["-C", "--directory"], _set_directory, "Work in DIR instead of the current directory.", hidden
        ),
        _build_directory_option(["--home"], _set_home, "Use DIR as your own directory instead of ~/.nexus3.", hidden),
        _build_switch("--no-pager", "no_pager", "Print long output directly, not in a pager.", hidden=hidden),
        _build_switch("--debug", "debug", "Show tracebacks.", hidden=hidden),
        _build_switch(
            "--trace-hooks", "trace_hooks", "Print every hook call with plugin, time and answers.", hidden=hidden
        ),
    ]


def _build_directory_option(names: list[str], callback: Callable[..., None], text: str, hidden: bool) -> TyperOption:
    return TyperOption(
        param_decls=names, type=str, metavar="DIR", callback=callback, expose_value=False, hidden=hidden, help=text
    )


def _build_switch(flag: str, attribute: str, text: str, *, hidden: bool) -> TyperOption:
    def set_switch(ctx: typer.Context, _param: Any, value: bool) -> None:  # noqa: ANN401 - Typer's own type is private
        if value:
            setattr(_get_cli_context(ctx), attribute, True)

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
    _get_cli_context(ctx).change_directory(value)


def _set_home(ctx: typer.Context, _param: Any, value: str | None) -> None:  # noqa: ANN401 - as above
    if value is None:
        return
    if not value:
        raise typer.BadParameter("it must name a directory")
    _get_cli_context(ctx).home = os.path.expanduser(value)  # noqa: PTH111 - no shell does it in `--home=~/x`


def _get_cli_context(ctx: typer.Context) -> CliContext:
    cli: CliContext = ctx.find_root().obj
    return cli


def check_agent_files(profile: str, files: Sequence[str] | None) -> tuple[str, ...]:
    """Return the files of `--file`.

    Raises:
        UsageError: No other agent is named, or a path is empty.
    """
    if files and profile == OWN_PROFILE:
        raise UsageError("--file is about the rules of another agent", hint="name it with --as, or leave out --file")
    if files and not all(files):  # it would be the directory itself
        raise UsageError("--file must not be empty", hint="name the file that the agent works on")
    return tuple(files or ())
