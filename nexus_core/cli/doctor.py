"""`nexus doctor`."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.plugins import find_replacements
from nexus_core.errors import ConfigError
from nexus_core.host.candidates import OWN_DISTRIBUTION
from nexus_core.layers.diagnosis import CHECKS, diagnose
from nexus_core.layers.volatile import find_volatile_sections
from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus
    from nexus_core.values.loaded import Loaded

app = typer.Typer()

_PLUGIN_PROBLEM = "plugin-problem"
_REPLACED = "replaced-name"
_OTHER_COMMAND = "other-command"
_MEANINGS = {
    **{code: check.meaning for code, check in CHECKS.items()},
    _PLUGIN_PROBLEM: "A plugin did something wrong, and the run went on without",
    "invalid-setting": "A setting is unknown, or cannot have that value; the doctor goes on as if nothing were set",
    _OTHER_COMMAND: "Another program called nexus comes first on PATH",
    _REPLACED: "A third-party plugin has something of the same name as Nexus, and that is used",
    "unknown-name": "A setting names a plugin, a summariser or an API that is not there",
    "guessed-model": "provider.model is not in the table of models, and is taken for one with a similar name",
    "unknown-model": "Nobody knows provider.model, so its window is assumed",
}

Codes = Annotated[bool, typer.Option("--codes", help="Explain the codes instead of looking for problems.")]


@app.command(epilog="\b\nExamples:\n  nexus doctor\n  nexus -C services/auth doctor --json")
def doctor(ctx: typer.Context, json: Json = False, codes: Codes = False) -> None:
    """Look for problems in what a directory contributes; exits with 1 if there are any."""
    shell: CommandShell = ctx.obj
    if codes:
        _print_codes(shell, json=json)
        return
    with shell.nexus(strict=False, warn=False) as nexus:  # a broken plugin is a finding, neither less nor more
        loaded, faults = _load(nexus)
        findings = sorted([*faults, *examine(nexus, loaded), *find_other_command()], key=_order)
    if json:
        shell.console.json({"schema": 1, "findings": [_describe(finding) for finding in findings]})
    else:
        for finding in findings:
            shell.console.text(visible_line(f"Note: {finding}" if finding.is_note else str(finding)))
    troubles = sum(not finding.is_note for finding in findings)
    if not findings:
        shell.console.message("Nothing found.")
    if troubles:
        shell.console.message(counted(troubles, "finding"))
        raise typer.Exit(FINDINGS)


def _load(nexus: Nexus) -> tuple[Loaded, list[Finding]]:
    """What a directory contributes; where its settings are refused, without any, and what is wrong with them."""
    try:
        return nexus.load(), []
    except ConfigError as error:
        from dataclasses import replace  # noqa: PLC0415 - most settings are right

        from nexus_core.layers.faults import find_invalid_settings  # noqa: PLC0415 - as above
        from nexus_core.layers.loading import load_layers  # noqa: PLC0415 - as above
        from nexus_core.values.settings import Settings  # noqa: PLC0415 - as above

        loaded = load_layers(nexus.host, nexus.request())  # raises again where a file is no JSON
        faults = find_invalid_settings(loaded.settings, nexus.host)
        if not faults:  # it is about something else
            raise error from None
        return replace(loaded, settings=Settings()), faults


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


def examine(nexus: Nexus, loaded: Loaded) -> list[Finding]:
    """All that is wrong with what was loaded, and with the plugins, sorted by place, notes last."""
    request = nexus.request()
    found = [*diagnose(loaded), *nexus.host.diagnose(request, loaded)]
    if loaded.active:
        from nexus_core.layers.rechecking import find_code_faults  # noqa: PLC0415 - most projects need no approval

        found += find_code_faults(loaded, request)
    found += find_volatile_sections(*(nexus.host.static_sections(request, loaded) for _ in range(2)))
    if loaded.settings.value:
        found += find_odd_settings(nexus, loaded)
    replaced = [
        Finding(_REPLACED, f"plugin {each.plugin} replaces {each}", is_note=True)
        for each in find_replacements(nexus, loaded)
    ]
    # Last, because a plugin may have failed while it looked for trouble.
    problems = [Finding(_PLUGIN_PROBLEM, str(problem)) for problem in nexus.problems]
    return sorted([*found, *replaced, *problems], key=_order)


def find_odd_settings(nexus: Nexus, loaded: Loaded) -> list[Finding]:
    """Settings that name what nobody knows, and are used all the same."""
    from nexus_core.layers.faults import find_missing_names, locate_finding  # noqa: PLC0415 - only where there are some
    from nexus_core.tokens.counters import find_unknown  # noqa: PLC0415 - as above

    settings = loaded.settings
    name = settings.get("provider.model")
    model = find_unknown(name, host=nexus.host, settings=settings) if isinstance(name, str) else None
    models = [] if model is None else [locate_finding(model, settings, "/provider/model")]
    return [*models, *find_missing_names(loaded, nexus.host)]


def _order(finding: Finding) -> tuple[bool, str, int, int, str, str]:
    return finding.is_note, str(finding.path or ""), finding.line, finding.column, finding.code, finding.message


def _describe(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "message": finding.message,
        "path": str(finding.path) if finding.path else None,
        "line": finding.line,
        "column": finding.column,
        "note": finding.is_note,
    }


def _print_codes(shell: CommandShell, *, json: bool) -> None:
    if json:
        shell.console.json({"schema": 1, "codes": _MEANINGS})
    else:
        shell.console.table([("CODE", "MEANING"), *_MEANINGS.items()], styles=["bold"])
        shell.console.message("Plugins have codes of their own.")
