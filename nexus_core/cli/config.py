"""`nexus config show|get|set|unset|validate|migrate|schema`."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.options import DryRun, Json, RequireTrusted  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.shell import project_directory
from nexus_core.config.dotted import follow_keys
from nexus_core.config.keys import default_of, keys_of, known_keys, require_known
from nexus_core.config.pointers import join_pointer, split_pointer
from nexus_core.config.withholding import withhold_secrets
from nexus_core.errors import ConfigError, FileError, NexusError, UsageError
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.cli.shell import CommandShell
    from nexus_core.config.changing import ConfigMigration
    from nexus_core.values.finding import Finding
    from nexus_core.values.settings import Settings

app = typer.Typer(
    help="Show, change and check settings.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus config show --origins\n  nexus config set provider.model gpt-4o",
)

MAX_FAULTS = 100
"""How many faults are shown at once: for each, its file is read again."""


Key = Annotated[
    str, typer.Argument(metavar="KEY", help="A setting by its dotted name: provider.model.", autocompletion=known_keys)
]


@app.command(epilog="\b\nExamples:\n  nexus config show\n  nexus config show --origins")
def show(
    ctx: typer.Context,
    origins: Annotated[bool, typer.Option("--origins", help="Say where each setting comes from.")] = False,
    json: Json = False,
    require_trusted: RequireTrusted = False,
) -> None:
    """Print what all layers together set."""
    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        loaded = nexus.load()
    shell.review(loaded, require_trusted=require_trusted)
    rows = list(_rows(loaded.settings))
    if json:
        settings = withhold_secrets(loaded.settings.value)
        shell.console.json({"schema": 1, "settings": settings, "origins": _origins(loaded.settings)})
    elif origins:
        shell.console.table([("SETTING", "VALUE", "FROM", "OVERRIDES"), *rows], styles=["bold"])
    else:
        shell.console.table([("SETTING", "VALUE"), *(row[:2] for row in rows)], styles=["bold"])


def _rows(settings: Settings) -> list[tuple[str, str, str, str]]:
    rows = []
    shown = withhold_secrets(settings.value)
    for pointer, (winner, *overridden) in settings.origins.items():
        value = _follow(shown, pointer)
        if not isinstance(value, dict | list) or not value:
            where = f"{winner} ({winner.layer})"
            rows.append((".".join(split_pointer(pointer)), _in_json(value), where, ", ".join(map(str, overridden))))
    return sorted(rows)


def _origins(settings: Settings) -> dict[str, object]:
    return {
        pointer: [
            {"path": str(each.path), "line": each.line, "column": each.column, "layer": each.layer} for each in found
        ]
        for pointer, found in sorted(settings.origins.items())
    }


def _follow(value: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON value
    for token in split_pointer(pointer):
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


def _in_json(value: object, indent: int | None = None) -> str:
    import json  # noqa: PLC0415 - many settings are words

    return json.dumps(value, ensure_ascii=False, indent=indent)


@app.command(epilog="\b\nExamples:\n  nexus config get provider.model\n  nexus config get context --json")
def get(ctx: typer.Context, key: Key, json: Json = False, require_trusted: RequireTrusted = False) -> None:
    """Print one setting, or its default where nobody set it."""
    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        loaded = nexus.load()
    keys = keys_of(key)
    if join_pointer(keys) not in loaded.settings.origins:
        require_known(key)
    shell.review(loaded, require_trusted=require_trusted, warn=False)
    value = follow_keys(withhold_secrets(loaded.settings.value), keys)
    value = default_of(key) if value is None else value
    if json:
        shell.console.json({"schema": 1, "key": key, "value": value})
    else:
        shell.console.text(value if isinstance(value, str) else _in_json(value))


@app.command(
    "set",
    epilog="\b\nExamples:\n  nexus config set provider.model gpt-4o\n  nexus config set --global provider.model o3",
)
def set_setting(
    ctx: typer.Context,
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, or a plain word.")],
    for_all: Annotated[
        bool, typer.Option("--global", help="In your own config.json instead of the project's.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Change one setting in config.json, and nothing else in it."""
    from nexus_core.config.changing import change_setting  # noqa: PLC0415 - only this command writes
    from nexus_core.layers.faults import find_errors  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with shell.nexus(layers=False) as nexus:
        path = (nexus.home if for_all else project_directory(nexus)) / "config.json"
        change = partial(change_setting, path, key, value, own=for_all, find=partial(find_errors, host=nexus.host))
        text = change(write=False)
        if not for_all:
            _refuse_what_is_ignored(shell, path, key, text)
        if dry_run:
            shell.console.text(_shown(text))
            shell.console.message("Nothing was written.")
            return
        change()
    shell.console.text(str(path))
    with suppress(NexusError), shell.nexus() as nexus:  # what is wrong with another file is not about this one
        if any(
            part.path == path and part.pointer.startswith(join_pointer(keys_of(key))) for part in nexus.load().active
        ):
            shell.console.message("It takes effect after `nexus trust allow`.")


@app.command(epilog="\b\nExamples:\n  nexus config unset provider.model\n  nexus config unset --global renderer")
def unset(
    ctx: typer.Context,
    key: Key,
    for_all: Annotated[
        bool, typer.Option("--global", help="In your own config.json instead of the project's.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove one setting from config.json, and nothing else."""
    from nexus_core.config.changing import remove_setting  # noqa: PLC0415 - only this command writes
    from nexus_core.layers.faults import find_errors  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with shell.nexus(layers=False) as nexus:
        path = (nexus.home if for_all else project_directory(nexus)) / "config.json"
        text = remove_setting(path, key, write=not dry_run, find=partial(find_errors, host=nexus.host))
    if dry_run:
        shell.console.text(_shown(text))
        shell.console.message("Nothing was written.")
        return
    shell.console.text(str(path))
    with suppress(NexusError), shell.nexus() as nexus:  # what is wrong with another file is not about this one
        origins = nexus.load().settings.origins.get(join_pointer(keys_of(key)))
        if origins:
            shell.console.message(visible_line(f"{key} is still set in {origins[0]}."))


def _shown(text: str) -> str:
    """The text of a config.json as it is; if there is a secret in it, what it says without."""
    from nexus_core.config.json_parser import parse_json  # noqa: PLC0415 - only this command writes

    value = parse_json(text).value
    without = withhold_secrets(value)
    return text if without == value else _in_json(without, indent=2)


def _refuse_what_is_ignored(shell: CommandShell, path: Path, key: str, text: str) -> None:
    """Refuse to write into a project what only the user decides; it would have no effect."""
    from nexus_core.config.json_parser import parse_json  # noqa: PLC0415 - only this command writes
    from nexus_core.layers.faults import find_ignored_settings  # noqa: PLC0415 - as above
    from nexus_core.layers.loading import load_layers  # noqa: PLC0415 - as above

    settings = cast("dict[str, object]", parse_json(text.removeprefix("\ufeff")).value)
    found: list[Finding] = []
    with (
        suppress(ConfigError, FileError),
        shell.nexus() as nexus,
    ):  # what is wrong with another file is not about this one
        found = find_ignored_settings(path, settings, load_layers(nexus.host, nexus.request()), nexus.host)
    for finding in found:
        setting = finding.message.partition(" ")[0]
        if f"{key}.".startswith(f"{setting}.") or f"{setting}.".startswith(f"{key}."):
            what = visible_line(finding.message.removesuffix("; it is ignored"))
            hint = f"`nexus config set --global {key} …` sets it for all that you do"
            raise UsageError(f"{what}, so it would be ignored", where=str(path), hint=hint)


@app.command(epilog="\b\nExamples:\n  nexus config validate\n  nexus -C services/auth config validate --json")
def validate(ctx: typer.Context, json: Json = False) -> None:
    """Check the settings of all layers, and show every fault."""
    from nexus_core.cli.doctor import find_odd_settings  # noqa: PLC0415 - only this command checks
    from nexus_core.layers.faults import find_errors  # noqa: PLC0415 - pydantic takes its time
    from nexus_core.layers.loading import load_layers  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        loaded = load_layers(nexus.host, nexus.request())
        found = find_errors(loaded.settings, nexus.host)
        faults = list(islice(found, MAX_FAULTS))
        is_all = next(found, None) is None
        odd = [] if faults else find_odd_settings(nexus, loaded)
    if json:
        rows = [{"message": fault.what, "where": fault.where} for fault in faults]
        shell.console.json({"schema": 1, "faults": rows})
    for fault in faults if not json else ():
        shell.console.text(f"{fault}\n")
    for finding in odd:
        shell.console.warning(visible_line(str(finding)))
    more = "" if is_all else " and more"
    shell.console.message(f"{counted(len(loaded.configs), 'file')}, {counted(len(faults), 'fault')}{more}.")
    if faults:
        raise typer.Exit(FINDINGS)


@app.command(epilog="\b\nExamples:\n  nexus config migrate --dry-run\n  nexus config migrate")
def migrate(
    ctx: typer.Context,
    in_project: Annotated[
        bool, typer.Option("--project", help="The project's config.json instead of your own.")
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Translate settings of NEXUS3 in config.json.

    A backup is kept beside it. Both systems read the same file, and Nexus works without this: it sets the other
    settings aside. NEXUS3 refuses a file with settings of Nexus, so it needs the backup back, or Nexus a directory of
    its own (NEXUS_HOME).
    """
    from nexus_core.config.changing import migrate_config  # noqa: PLC0415 - only this command migrates
    from nexus_core.layers.faults import find_errors  # noqa: PLC0415 - as above
    from nexus_core.layers.guarding import is_for_users_only  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with shell.nexus(layers=False) as nexus:
        path = (project_directory(nexus) if in_project else nexus.home) / "config.json"
        protected = nexus.host.protected_settings() if in_project else ()
        done = migrate_config(
            path,
            allowed=lambda name: not in_project or not is_for_users_only(name, protected),
            write=not dry_run,
            find=partial(find_errors, host=nexus.host),
        )
    if json:
        rows = _describe_migration(done) if done else []
        backup = str(done.backup) if done and done.backup else None
        shell.console.json({"schema": 1, "file": str(path), "dry_run": dry_run, "backup": backup, "settings": rows})
    elif done:
        table = [(visible_line(str(row["from"])), _word_migration(row)) for row in _describe_migration(done)]
        shell.console.table([("NEXUS3", "NEXUS"), *table], styles=["bold"])
    for what in done.faults if done else ():
        shell.console.warning(visible_line(f"{path}: {what}"))
    if done is None and not path.exists():
        shell.console.message(visible_line(f"Nothing to migrate: there is no {path}."))
    elif done is None:
        shell.console.message(visible_line(f"Nothing to migrate: {path} has no settings of NEXUS3."))
    elif done.backup is None:
        shell.console.message("Nothing was written.")
    else:
        shell.console.message(visible_line(f"{path} has settings of Nexus now; as it was: {done.backup}."))
        shell.console.message(
            "NEXUS3 refuses such a file: to use both, put the backup back and set NEXUS_HOME for Nexus."
        )


def _describe_migration(done: ConfigMigration) -> list[dict[str, object]]:
    """Return what becomes of each setting; a value only where it changes, and where it is not a secret."""
    from nexus_core.text.redaction import redact  # noqa: PLC0415 - only this command needs it

    rows: list[dict[str, object]] = []
    for each in done.moved:
        shown = each.value if each.is_changed and not redact(str(each.value)).counts else None
        row = {"from": ".".join(each.source), "to": ".".join(each.target) or None}
        rows.append({**row, "value": shown, "reason": each.reason or None})
    names = [".".join(keys) for keys in done.kept]
    return rows + [{"from": name, "to": name, "value": None, "reason": None} for name in names]


def _word_migration(row: Mapping[str, object]) -> str:
    if row["to"] is None:
        return f"not carried: {row['reason']}"
    if row["to"] == row["from"]:
        return "stays"
    return visible_line(str(row["to"]) if row["value"] is None else f"{row['to']} = {dumps(row['value'])}")


@app.command(epilog="\b\nExamples:\n  nexus config schema\n  nexus config schema > nexus.schema.json")
def schema(ctx: typer.Context) -> None:
    """Print the JSON Schema of config.json, for editors."""
    from nexus_core.config.editor_schema import json_schema  # noqa: PLC0415 - pydantic takes its time
    from nexus_core.config.validation import import_models  # noqa: PLC0415 - as above

    shell: CommandShell = ctx.obj
    with shell.nexus(layers=False) as nexus:
        models = import_models(nexus.host.setting_models())
    shell.console.json(json_schema(models))
