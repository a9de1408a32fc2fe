"""`nexus config show|get|set|validate|schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.config.keys import default_of, known_keys, pointer_of
from nexus_core.errors import UnknownNameError

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.values.settings import Settings

app = typer.Typer(help="Show, change and check settings.", no_args_is_help=True)


def _keys() -> list[str]:
    return known_keys()


Key = Annotated[
    str, typer.Argument(metavar="KEY", help="A setting by its dotted name: provider.model.", autocompletion=_keys)
]


@app.command(epilog="\b\nExamples:\n  nexus config show\n  nexus config show --origins")
def show(
    ctx: typer.Context,
    origins: Annotated[bool, typer.Option("--origins", help="Say where each setting comes from.")] = False,
    json: Json = False,
) -> None:
    """Print what all layers together set."""
    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        loaded = nexus.load()
    shell.warn_about(loaded.findings)
    rows = list(_rows(loaded.settings))
    if json:
        shell.console.json({"schema": 1, "settings": loaded.settings.value, "origins": _origins(loaded.settings)})
    elif origins:
        shell.console.table([("SETTING", "VALUE", "FROM", "OVERRIDES"), *rows], styles=["bold"])
    else:
        shell.console.table([("SETTING", "VALUE"), *(row[:2] for row in rows)], styles=["bold"])


def _rows(settings: Settings) -> list[tuple[str, str, str, str]]:
    rows = []
    for pointer, (winner, *overridden) in settings.origins.items():
        value = _follow(settings.value, pointer)
        if not isinstance(value, dict | list) or not value:
            where = f"{winner} ({winner.layer})"
            rows.append((pointer[1:].replace("/", "."), _shown(pointer, value), where, ", ".join(map(str, overridden))))
    return sorted(rows)


def _origins(settings: Settings) -> dict[str, object]:
    return {
        pointer: [
            {"path": str(each.path), "line": each.line, "column": each.column, "layer": each.layer} for each in found
        ]
        for pointer, found in sorted(settings.origins.items())
    }


def _follow(value: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON value
    from nexus_core.config.json_parser import split_pointer  # noqa: PLC0415 - only this command needs it

    for token in split_pointer(pointer):
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


def _shown(pointer: str, value: object) -> str:
    import json  # noqa: PLC0415 - as above

    # The values of a server's environment and headers are often secrets, whatever they are called.
    if pointer.startswith("/mcp_servers/") and ("/env/" in pointer or "/headers/" in pointer):
        return "(hidden)"
    return json.dumps(value, ensure_ascii=False)


@app.command(epilog="\b\nExamples:\n  nexus config get provider.model\n  nexus config get context --json")
def get(ctx: typer.Context, key: Key, json: Json = False) -> None:
    """Print one setting, or its default where nobody set it."""
    shell: CommandShell = ctx.obj
    if key not in known_keys() and not key.startswith("plugins."):
        raise UnknownNameError("setting", key, known_keys())
    with shell.nexus() as nexus:
        settings = nexus.load().settings
    value = settings.get(key, default_of(key))
    if json:
        shell.console.json({"schema": 1, "key": key, "value": value})
    else:
        shell.console.text(value if isinstance(value, str) else _shown(pointer_of(key), value))


@app.command(
    "set",
    epilog="\b\nExamples:\n  nexus config set provider.model gpt-4o\n  nexus config set --global provider.model o3",
)
def set_setting(
    ctx: typer.Context,
    key: Key,
    value: Annotated[str, typer.Argument(help="JSON, or a plain word.")],
    for_all: Annotated[
        bool, typer.Option("--global", help="In your own config.json instead of the project's.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Change one setting in config.json; everything else in the file stays as it is."""
    from nexus_core.config.changing import change_setting  # noqa: PLC0415 - only this command writes

    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        path = (nexus.home if for_all else nexus.cwd / ".nexus3") / "config.json"
    text = change_setting(path, key, value, write=not dry_run)
    if dry_run:
        shell.console.text(text)
        shell.console.message("Nothing was written.")
    else:
        shell.console.text(str(path))


@app.command(epilog="\b\nExamples:\n  nexus config validate\n  nexus -C services/auth config validate --json")
def validate(ctx: typer.Context, json: Json = False) -> None:
    """Check the settings of all layers, and show every fault."""
    from nexus_core.config.validation import find_faults, import_models  # noqa: PLC0415 - pydantic takes its time
    from nexus_core.layers.loading import load_layers  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        loaded = load_layers(nexus.host, nexus.request())
        models = import_models({name: declared.model for name, declared in nexus.host.settings().items()})
    faults = list(find_faults(loaded.settings, models))
    if json:
        rows = [{"message": fault.what, "where": fault.where} for fault in faults]
        shell.console.json({"schema": 1, "faults": rows})
    for fault in faults if not json else ():
        shell.console.text(f"{fault}\n")
    shell.console.message(f"{len(loaded.configs)} files, {len(faults)} faults.")
    if faults:
        raise typer.Exit(FINDINGS)


@app.command(epilog="\b\nExamples:\n  nexus config schema\n  nexus config schema > nexus.schema.json")
def schema(ctx: typer.Context) -> None:
    """Print the JSON Schema of config.json, for editors."""
    from nexus_core.config.keys import json_schema  # noqa: PLC0415 - pydantic takes its time

    ctx.obj.console.json(json_schema())
