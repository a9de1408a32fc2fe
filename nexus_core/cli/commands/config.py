"""`nexus config`: show, change, check and migrate settings."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nexus_core.cli.context import EXIT_FINDINGS, get_project_directory
from nexus_core.cli.options import DryRunOption, JsonOption, RequireTrustedOption
from nexus_core.config.pointers import follow_keys, join_pointer, split_pointer
from nexus_core.config.renamed import RENAMED_SETTINGS
from nexus_core.config.secrets import withhold_secrets
from nexus_core.config.validate import get_default, list_settings, require_known_setting, split_setting_name
from nexus_core.errors import ConfigError, FileError, NexusError, UsageError
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.config.migrate import ConfigMigration
    from nexus_core.types.plugins import Finding
    from nexus_core.types.settings import Settings

app = typer.Typer(
    help="Show, change and validate settings.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus config show --origins\n  nexus config set provider.model gpt-4o",
)

MAX_LISTED_ERRORS = 100
"""Errors to show at once: for each, its file is read again."""


def _resolve_key(key: str) -> str:
    """Return the new name of a setting, with a hint if the given one is a former name."""
    new = RENAMED_SETTINGS.get(key)
    if new is None:
        return key
    typer.echo(f"{key} is called {new} now; the former name is removed in the next release", err=True)
    return new


KeyArgument = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="A setting by its dotted name: provider.model.",
        autocompletion=list_settings,
        callback=_resolve_key,
    ),
]


@app.command(epilog="\b\nExamples:\n  nexus config show\n  nexus config show --origins")
def show(
    ctx: typer.Context,
    origins: Annotated[bool, typer.Option("--origins", help="Say where each setting comes from.")] = False,
    json: JsonOption = False,
    require_trusted: RequireTrustedOption = False,
) -> None:
    """Print the merged settings of all layers."""
    cli: CliContext = ctx.obj
    with cli.nexus() as nexus:
        loaded = nexus.load()
    cli.review(loaded, require_trusted=require_trusted)
    rows = list(_list_setting_rows(loaded.settings))
    if json:
        settings = withhold_secrets(loaded.settings.value)
        cli.console.json({"schema": 1, "settings": settings, "origins": _origins_to_json(loaded.settings)})
    elif origins:
        cli.console.table([("SETTING", "VALUE", "FROM", "OVERRIDES"), *rows], styles=["bold"])
    else:
        cli.console.table([("SETTING", "VALUE"), *(row[:2] for row in rows)], styles=["bold"])


def _list_setting_rows(settings: Settings) -> list[tuple[str, str, str, str]]:
    rows = []
    shown = withhold_secrets(settings.value)
    for pointer, (winner, *overridden) in settings.origins.items():
        value = _follow_pointer(shown, pointer)
        if not isinstance(value, dict | list) or not value:
            where = f"{winner} ({winner.layer})"
            rows.append((".".join(split_pointer(pointer)), _dump_json(value), where, ", ".join(map(str, overridden))))
    return sorted(rows)


def _origins_to_json(settings: Settings) -> dict[str, object]:
    return {
        pointer: [
            {"path": str(each.path), "line": each.line, "column": each.column, "layer": each.layer} for each in found
        ]
        for pointer, found in sorted(settings.origins.items())
    }


def _follow_pointer(value: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON value
    for token in split_pointer(pointer):
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


def _dump_json(value: object, indent: int | None = None) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=indent)


@app.command(epilog="\b\nExamples:\n  nexus config get provider.model\n  nexus config get context --json")
def get(
    ctx: typer.Context, key: KeyArgument, json: JsonOption = False, require_trusted: RequireTrustedOption = False
) -> None:
    """Print one setting or its default."""
    cli: CliContext = ctx.obj
    with cli.nexus() as nexus:
        loaded = nexus.load()
    keys = split_setting_name(key)
    if join_pointer(keys) not in loaded.settings.origins:
        require_known_setting(key)
    cli.review(loaded, require_trusted=require_trusted, warn=False)
    value = follow_keys(withhold_secrets(loaded.settings.value), keys)
    value = get_default(key) if value is None else value
    if json:
        cli.console.json({"schema": 1, "key": key, "value": value})
    else:
        cli.console.text(value if isinstance(value, str) else _dump_json(value))


@app.command(
    "set",
    epilog="\b\nExamples:\n  nexus config set provider.model gpt-4o\n  nexus config set --global provider.model o3",
)
def set_setting(
    ctx: typer.Context,
    key: KeyArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, or a plain word.")],
    for_all: Annotated[
        bool, typer.Option("--global", help="In your own config.json instead of the project's.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Change one setting in config.json.

    Everything else in the file stays as it is.
    """
    from nexus_core.config.edit import change_setting
    from nexus_core.layers.diagnose import find_setting_errors

    cli: CliContext = ctx.obj
    with cli.nexus(layers=False) as nexus:
        path = (nexus.home if for_all else get_project_directory(nexus)) / "config.json"
        change = partial(
            change_setting, path, key, value, own=for_all, find=partial(find_setting_errors, host=nexus.host)
        )
        text = change(write=False)
        if not for_all:
            _refuse_ignored_setting(cli, path, key, text)
        _refuse_misspelt_provider(cli, path, key, text)
        if dry_run:
            cli.console.text(_hide_config_secrets(text))
            cli.console.message("Nothing was written.")
            return
        change()
    cli.console.text(str(path))
    with suppress(NexusError), cli.nexus() as nexus:  # what is wrong with another file is not about this one
        if any(
            part.path == path and part.pointer.startswith(join_pointer(split_setting_name(key)))
            for part in nexus.load().active
        ):
            cli.console.message("It takes effect after `nexus trust allow`.")
        if key in _PROVIDER_CHOICES and not for_all:
            _warn_of_refused_choice(cli, nexus.load().settings)


_PROVIDER_CHOICES = ("provider", "provider.model", "provider.provider")


def _warn_of_refused_choice(cli: CliContext, settings: Settings) -> None:
    """Warn if agents will refuse to be sent to a provider that only the project names."""
    from nexus_core.agents.agent import refuse_choice_of_project

    try:
        refuse_choice_of_project(settings, has_model=False)
    except UsageError as error:
        cli.console.warning(f"{error.what}: `nexus chat` and other agents refuse it without {error.command}")


@app.command(epilog="\b\nExamples:\n  nexus config unset provider.model\n  nexus config unset --global renderer")
def unset(
    ctx: typer.Context,
    key: KeyArgument,
    for_all: Annotated[
        bool, typer.Option("--global", help="In your own config.json instead of the project's.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Remove one setting from config.json.

    Everything else in the file stays as it is.
    """
    from nexus_core.config.edit import remove_setting
    from nexus_core.layers.diagnose import find_setting_errors

    cli: CliContext = ctx.obj
    with cli.nexus(layers=False) as nexus:
        path = (nexus.home if for_all else get_project_directory(nexus)) / "config.json"
        text = remove_setting(path, key, write=not dry_run, find=partial(find_setting_errors, host=nexus.host))
    if dry_run:
        cli.console.text(_hide_config_secrets(text))
        cli.console.message("Nothing was written.")
        return
    cli.console.text(str(path))
    with suppress(NexusError), cli.nexus() as nexus:  # what is wrong with another file is not about this one
        origins = nexus.load().settings.origins.get(join_pointer(split_setting_name(key)))
        if origins:
            cli.console.message(visible_line(f"{key} is still set in {origins[0]}."))


def _hide_config_secrets(text: str) -> str:
    """Return the text of a config.json, or if it contains secrets, its settings without them."""
    from nexus_core.config.jsonc import parse_json

    value = parse_json(text).value
    without = withhold_secrets(value)
    return text if without == value else _dump_json(without, indent=2)


def _refuse_ignored_setting(cli: CliContext, path: Path, key: str, text: str) -> None:
    """Refuse to write a user-only setting into a project, where it would have no effect."""
    from nexus_core.config.jsonc import parse_json
    from nexus_core.layers.diagnose import find_ignored_settings
    from nexus_core.layers.load import load_layers

    settings = cast("dict[str, object]", parse_json(text.removeprefix("\ufeff")).value)
    found: list[Finding] = []
    with (
        suppress(ConfigError, FileError),
        cli.nexus() as nexus,
    ):  # what is wrong with another file is not about this one
        found = find_ignored_settings(path, settings, load_layers(nexus.host, nexus.request()), nexus.host)
    for finding in found:
        setting = finding.message.partition(" ")[0]
        if f"{key}.".startswith(f"{setting}.") or f"{setting}.".startswith(f"{key}."):
            what = visible_line(finding.message.removesuffix("; it is ignored"))
            hint = f"`nexus config set --global {key} …` sets it for all that you do"
            raise UsageError(f"{what}, so it would be ignored", where=str(path), hint=hint)


def _refuse_misspelt_provider(cli: CliContext, path: Path, key: str, text: str) -> None:
    """Refuse a provider whose name is unknown and resembles a known one."""
    from nexus_core.config.jsonc import parse_json
    from nexus_core.layers.diagnose import PROVIDER_SETTING, suggest_provider
    from nexus_core.layers.load import load_layers

    if not f"{PROVIDER_SETTING}.".startswith(f"{key}."):
        return
    settings = cast("dict[str, Any]", parse_json(text.removeprefix("\ufeff")).value)
    name = settings["provider"].get("provider")
    hint = ""
    with suppress(ConfigError, FileError), cli.nexus() as nexus:  # of another file, which the command is not about
        hint = suggest_provider(name, load_layers(nexus.host, nexus.request()), nexus.host) if name else ""
    if hint:
        raise UsageError(f"no provider is called {name!r}", where=str(path), hint=hint)


@app.command(epilog="\b\nExamples:\n  nexus config validate\n  nexus -C services/auth config validate --json")
def validate(ctx: typer.Context, json: JsonOption = False) -> None:
    """Validate the settings of all layers.

    Every fault is shown.
    """
    from nexus_core.cli.commands.doctor import find_suspect_settings
    from nexus_core.layers.diagnose import find_setting_errors
    from nexus_core.layers.load import load_layers

    cli: CliContext = ctx.obj
    with cli.nexus() as nexus:
        loaded = load_layers(nexus.host, nexus.request())
        found = find_setting_errors(loaded.settings, nexus.host)
        faults = list(islice(found, MAX_LISTED_ERRORS))
        is_all = next(found, None) is None
        odd = [] if faults else find_suspect_settings(nexus, loaded)
    if json:
        rows = [{"message": fault.what, "where": fault.where} for fault in faults]
        cli.console.json({"schema": 1, "faults": rows})
    for fault in faults if not json else ():
        cli.console.text(f"{fault}\n")
    for finding in odd:
        cli.console.warning(visible_line(str(finding)))
    more = "" if is_all else " and more"
    cli.console.message(f"{format_count(len(loaded.configs), 'file')}, {format_count(len(faults), 'fault')}{more}.")
    if faults:
        raise typer.Exit(EXIT_FINDINGS)


@app.command(epilog="\b\nExamples:\n  nexus config migrate --dry-run\n  nexus config migrate")
def migrate(
    ctx: typer.Context,
    in_project: Annotated[
        bool, typer.Option("--project", help="The project's config.json instead of your own.")
    ] = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
) -> None:
    """Convert NEXUS3 settings in config.json.

    A backup is kept beside it. Both systems read the same file, and Nexus works without this: it sets the other
    settings aside. NEXUS3 refuses a file with settings of Nexus, so it needs the backup back, or Nexus a directory of
    its own (NEXUS_HOME).
    """
    from nexus_core.config.migrate import migrate_config
    from nexus_core.layers.diagnose import find_setting_errors
    from nexus_core.layers.policy import is_user_only

    cli: CliContext = ctx.obj
    with cli.nexus(layers=False) as nexus:
        path = (get_project_directory(nexus) if in_project else nexus.home) / "config.json"
        protected = nexus.host.protected_settings() if in_project else ()
        done = migrate_config(
            path,
            allowed=lambda name: not in_project or not is_user_only(name, protected),
            write=not dry_run,
            find=partial(find_setting_errors, host=nexus.host),
        )
    if json:
        rows = _describe_migration(done) if done else []
        backup = str(done.backup) if done and done.backup else None
        cli.console.json({"schema": 1, "file": str(path), "dry_run": dry_run, "backup": backup, "settings": rows})
    elif done:
        table = [(visible_line(str(row["from"])), _format_migration(row)) for row in _describe_migration(done)]
        cli.console.table([("NEXUS3", "NEXUS"), *table], styles=["bold"])
    for what in done.faults if done else ():
        cli.console.warning(visible_line(f"{path}: {what}"))
    if done is None and not path.exists():
        cli.console.message(visible_line(f"Nothing to migrate: there is no {path}."))
    elif done is None:
        cli.console.message(visible_line(f"Nothing to migrate: {path} has no settings of NEXUS3."))
    elif done.backup is None:
        cli.console.message("Nothing was written.")
    else:
        cli.console.message(visible_line(f"{path} has settings of Nexus now; as it was: {done.backup}."))
        cli.console.message(
            "NEXUS3 refuses such a file: to use both, put the backup back and set NEXUS_HOME for Nexus."
        )


def _describe_migration(done: ConfigMigration) -> list[dict[str, object]]:
    """Return the change of each setting. Values are included if they change and are not secret."""
    from nexus_core.text.secrets import redact

    rows: list[dict[str, object]] = []
    for each in done.moved:
        shown = each.value if each.is_changed and not redact(str(each.value)).counts else None
        row = {"from": ".".join(each.source), "to": ".".join(each.target) or None}
        rows.append({**row, "value": shown, "reason": each.reason or None})
    names = [".".join(keys) for keys in done.kept]
    return rows + [{"from": name, "to": name, "value": None, "reason": None} for name in names]


def _format_migration(row: Mapping[str, object]) -> str:
    if row["to"] is None:
        return f"not carried: {row['reason']}"
    if row["to"] == row["from"]:
        return "stays"
    return visible_line(str(row["to"]) if row["value"] is None else f"{row['to']} = {dumps(row['value'])}")


@app.command(epilog="\b\nExamples:\n  nexus config schema\n  nexus config schema > nexus.schema.json")
def schema(ctx: typer.Context) -> None:
    """Print the JSON Schema of config.json.

    Editors complete and check settings with it.
    """
    from nexus_core.config.editor_schema import build_json_schema
    from nexus_core.config.validate import import_settings_models

    cli: CliContext = ctx.obj
    with cli.nexus(layers=False) as nexus:
        models = import_settings_models(nexus.host.setting_models())
    cli.console.json(build_json_schema(models))
