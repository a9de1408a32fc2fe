"""`nexus doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time
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
_MEANINGS = {
    **{code: check.meaning for code, check in CHECKS.items()},
    _PLUGIN_PROBLEM: "A plugin did something wrong, and the run went on without",
}

Codes = Annotated[bool, typer.Option("--codes", help="Say what the codes mean, and look for nothing.")]


@app.command(epilog="\b\nExamples:\n  nexus doctor\n  nexus -C services/auth doctor --json")
def doctor(ctx: typer.Context, json: Json = False, codes: Codes = False) -> None:
    """Look for trouble in what a directory contributes; exits with 1 if something was found."""
    shell: CommandShell = ctx.obj
    if codes:
        _print_codes(shell, json=json)
        return
    with shell.nexus(strict=False, warn=False) as nexus:  # a broken plugin is a finding, neither less nor more
        findings = examine(nexus, nexus.load())
    if json:
        shell.console.json({"schema": 1, "findings": [_describe(finding) for finding in findings]})
    else:
        for finding in findings:
            shell.console.text(visible_line(f"Note: {finding}" if finding.is_note else str(finding)))
    troubles = sum(not finding.is_note for finding in findings)
    shell.console.message(counted(troubles, "finding") if troubles else "Nothing found.")
    if troubles:
        raise typer.Exit(FINDINGS)


def examine(nexus: Nexus, loaded: Loaded) -> list[Finding]:
    """All that is wrong with what was loaded, and with the plugins, sorted by place, notes last."""
    request = nexus.request()
    found = [*diagnose(loaded), *nexus.host.diagnose(request, loaded)]
    found += find_volatile_sections(*(nexus.host.static_sections(request, loaded) for _ in range(2)))
    # Last, because a plugin may have failed while it looked for trouble.
    problems = [Finding(_PLUGIN_PROBLEM, str(problem)) for problem in nexus.problems]
    return sorted([*found, *problems], key=_order)


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
