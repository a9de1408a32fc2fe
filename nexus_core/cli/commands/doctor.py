"""`nexus doctor`: problems with settings, files and plugins of a directory."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.commands.plugin import find_replacements
from nexus_core.cli.context import EXIT_FINDINGS, UNREADABLE_FILE, build_unreadable_finding
from nexus_core.cli.options import AgentFileOption, AgentOption, JsonOption, check_agent_files
from nexus_core.errors import ConfigError, FileError
from nexus_core.host.discovery import OWN_DISTRIBUTION
from nexus_core.layers import OWN_PROFILE
from nexus_core.layers.diagnose import DIAGNOSTIC_CHECKS, diagnose, find_volatile_sections
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.settings import Settings

app = typer.Typer()

_PLUGIN_PROBLEM = "plugin-problem"
_REPLACED_NAME = "replaced-name"
_OTHER_COMMAND = "other-command"
_OLD_PRICES = "old-prices"
_CODE_MEANINGS = {
    **{code: check.meaning for code, check in DIAGNOSTIC_CHECKS.items()},
    _PLUGIN_PROBLEM: "A plugin broke its contract, and its result was not used",
    "invalid-setting": "A setting is unknown or has an invalid value; the other checks run without settings",
    _OLD_PRICES: "The prices of models were read long ago, so that costs may be wrong",
    _OTHER_COMMAND: "Another program called nexus comes first on PATH",
    _REPLACED_NAME: "A third-party plugin replaces something bundled that has the same name",
    UNREADABLE_FILE: "A file of instructions cannot be read; the other checks run without those beside it",
    "unknown-name": "A setting names a plugin, summarizer or API that does not exist",
    "guessed-model": "provider.model is not in the table of models; a model with a similar name is assumed",
    "unknown-model": "provider.model is unknown, so its context window is assumed",
    "profile-cap": "With --as: a limit of that agent cuts a file, or leaves no room for it",
    "profile-front-matter": "With --as: the front matter of a rule cannot be parsed, or has an odd value",
    "profile-ignored": "With --as: that agent ignores a file in its directory, or finds nothing under a name",
    "profile-settings": "With --as: a settings file of that agent cannot be used",
    "profile-unread": "With --as: that agent would read something that is not shown here",
}

CodesOption = Annotated[bool, typer.Option("--codes", help="Explain the codes instead of looking for problems.")]


@app.command(epilog="\b\nExamples:\n  nexus -C services/auth doctor --json\n  nexus doctor --as cursor")
def doctor(
    ctx: typer.Context,
    profile: AgentOption = OWN_PROFILE,
    file: AgentFileOption = None,
    json: JsonOption = False,
    codes: CodesOption = False,
) -> None:
    """Find problems in this directory's configuration.

    With --as, find those of another agent's instruction files: rules that it cannot parse, files that it ignores or
    cuts, settings that it cannot use. Exits with 1 if there are any.
    """
    cli: CliContext = ctx.obj
    if codes:
        _print_codes(cli, json=json)
        return
    files = check_agent_files(profile, file)
    with cli.nexus(strict=False, warn=False) as nexus:  # a broken plugin is a finding, neither less nor more
        if profile != OWN_PROFILE:
            context = nexus.context(profile=profile, files=files)
            cli.note_outside_files(context.agent_view)
            findings = sorted(context.loaded.findings, key=_sort_key)
        else:
            loaded, faults = _load_or_find_errors(nexus)
            findings = sorted([*faults, *find_problems(nexus, loaded), *find_other_command()], key=_sort_key)
    if json:
        cli.console.json({"schema": 1, "findings": [_finding_to_json(finding) for finding in findings]})
    else:
        for finding in findings:
            text = visible_line(f"Note: {finding}" if finding.is_note else str(finding))
            cli.console.text(text, style="plain" if finding.is_note else "yellow", wrap=True)
    troubles = sum(not finding.is_note for finding in findings)
    if not findings:
        cli.console.message("No problems found.")
    if troubles:
        cli.console.message(format_count(troubles, "finding"))
        raise typer.Exit(EXIT_FINDINGS)


def _load_or_find_errors(nexus: Nexus) -> tuple[LoadedLayers, list[Finding]]:
    """Return the loaded layers, without texts that cannot be read and invalid settings, and findings about these."""
    try:
        return nexus.load(), []
    except (ConfigError, FileError) as error:
        from dataclasses import replace

        from nexus_core.layers.diagnose import find_invalid_settings
        from nexus_core.layers.load import load_layers
        from nexus_core.types.settings import Settings

        unreadable: list[FileError] = []
        loaded = load_layers(nexus.host, nexus.request(), unreadable=unreadable)  # raises if a file is not JSON
        invalid = find_invalid_settings(loaded.settings, nexus.host)
        if not invalid and not unreadable:  # it is about something else
            raise error from None
        faults = [*invalid, *map(build_unreadable_finding, unreadable)]
        return replace(loaded, settings=Settings()) if invalid else loaded, faults


def find_other_command() -> list[Finding]:
    """Return a note if the first `nexus` on PATH is not the one of this installation."""
    found = shutil.which("nexus")
    if found is None:
        return []
    own = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))),
    ]
    started = Path(sys.argv[0])
    if started.stem in {"nexus", OWN_DISTRIBUTION}:
        own.insert(0, started.parent)
    directories = [each.resolve() for each in own]
    if Path(found).resolve().parent in directories:  # a link to it is as good
        return []
    message = f"another program called nexus comes first on PATH: {found}; this one is in {directories[0]}"
    hint = f"put that directory first on PATH, or type {OWN_DISTRIBUTION}"
    return [Finding(_OTHER_COMMAND, f"{message}; {hint}", is_note=True)]


def find_problems(nexus: Nexus, loaded: LoadedLayers) -> list[Finding]:
    """Return the findings about the loaded layers and the plugins, sorted by place, notes last."""
    request = nexus.request()
    found = [*diagnose(loaded), *nexus.host.diagnose(request, loaded)]
    if loaded.active:
        from nexus_core.layers.approval import find_unapproved_code

        found += find_unapproved_code(loaded, request)
    found += find_volatile_sections(*(nexus.host.static_sections(request, loaded) for _ in range(2)))
    if loaded.settings.value:
        found += find_suspect_settings(nexus, loaded)
    found += find_old_prices(nexus, loaded.settings)
    replaced = [
        Finding(_REPLACED_NAME, f"plugin {each.plugin} replaces {each}", is_note=True)
        for each in find_replacements(nexus, loaded)
    ]
    # Last, because a plugin may have failed while it looked for trouble.
    problems = [Finding(_PLUGIN_PROBLEM, str(problem)) for problem in nexus.problems]
    return sorted([*found, *replaced, *problems], key=_sort_key)


def find_suspect_settings(nexus: Nexus, loaded: LoadedLayers) -> list[Finding]:
    """Return findings about settings that name an unknown model, plugin, summarizer or API."""
    from nexus_core.layers.diagnose import find_missing_names, locate_finding
    from nexus_core.tokens.counters import find_model_finding

    settings = loaded.settings
    name = settings.get("provider.model")
    model = find_model_finding(name, host=nexus.host, settings=settings) if isinstance(name, str) else None
    models = [] if model is None else [locate_finding(model, settings, "/provider/model")]
    return [*models, *find_missing_names(loaded, nexus.host)]


def find_old_prices(nexus: Nexus, settings: Settings) -> list[Finding]:
    """Return a note if the price of the configured model, or the newest of all prices, is old."""
    from nexus_core.tokens.prices import MAX_PRICE_AGE_DAYS, PriceList, get_price_age_days

    prices, name = PriceList(nexus.host, settings), settings.get("provider.model")
    names = [name] if isinstance(name, str) and name else [each.rstrip("*-") for each in nexus.host.models()]
    dated = [(price.date, price.source) for each in names if (price := prices.find(each)) is not None and price.date]
    date, source = max(dated, default=("", ""))
    if not date or get_price_age_days(date) <= MAX_PRICE_AGE_DAYS:
        return []
    whose = f"the price of {name!r} is" if names == [name] else "the prices of models are"
    setting = f"models.{name if names == [name] else 'NAME'}.price"
    message = f"{whose} of {date}, {get_price_age_days(date)} days ago, so that costs may be wrong"
    message += f"; update Nexus, or copy new ones from {source} to {setting}"
    return [Finding(_OLD_PRICES, message, is_note=True)]


def _sort_key(finding: Finding) -> tuple[bool, str, int, int, str, str]:
    return finding.is_note, str(finding.path or ""), finding.line, finding.column, finding.code, finding.message


def _finding_to_json(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "message": finding.message,
        "path": str(finding.path) if finding.path else None,
        "line": finding.line,
        "column": finding.column,
        "note": finding.is_note,
    }


def _print_codes(cli: CliContext, *, json: bool) -> None:
    if json:
        cli.console.json({"schema": 1, "codes": _CODE_MEANINGS})
    else:
        cli.console.table([("CODE", "MEANING"), *_CODE_MEANINGS.items()], styles=["bold"])
        cli.console.message("Plugins have codes of their own.")
