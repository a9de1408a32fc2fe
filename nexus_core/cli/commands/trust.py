"""`nexus trust`: approval of what a project would start or connect to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.context import EXIT_FINDINGS
from nexus_core.cli.options import DryRunOption, JsonOption
from nexus_core.config.pointers import SERVERS, split_pointer
from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.files.places import find_workspace
from nexus_core.text.safety import one_line
from nexus_core.trust.coverage import (
    add_code_digests,
    compare_code,
    describe_covered_code,
    describe_uncovered_code,
    predates_code_coverage,
)
from nexus_core.trust.fingerprint import name_effect, runs_project_code
from nexus_core.trust.report import (
    OPEN_DECISIONS,
    diff_contents,
    is_disabled,
    is_waiting,
    setting_to_json,
    summarize_setting,
)
from nexus_core.trust.store import TrustStore

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.text.console import ConsoleStyle
    from nexus_core.types.mcp import ActiveSetting

app = typer.Typer(
    help="Approve what a project may start or connect to.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus trust status\n  nexus trust allow",
)

_DECISION_STYLES: dict[str, ConsoleStyle] = {
    "allowed": "green",
    "denied": "dim",
    "disabled": "dim",
    "pending": "yellow",
    "changed": "red",
}

_NAMES_HINT = "As `status` names it; a server's own name will do."


def _list_pointers(ctx: typer.Context) -> list[str]:
    from nexus_core.text.secrets import completable_names

    return completable_names(part.pointer for part in _load_parts(ctx.find_root().obj)[0])


SettingsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SETTING]...", help=f"Settings. {_NAMES_HINT}", autocompletion=_list_pointers),
]
OptionalSettingArgument = Annotated[
    str | None, typer.Argument(metavar="[SETTING]", help=f"A setting. {_NAMES_HINT}", autocompletion=_list_pointers)
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; without SETTING, approve all that wait.")]


@app.command(epilog="\b\nExamples:\n  nexus trust status\n  nexus -C services/auth trust status --json")
def status(ctx: typer.Context, json: JsonOption = False) -> None:
    """List what the project would start, connect to or set.

    Each with where it stands, what you decided about it, and what your approval does not cover.
    """
    cli: CliContext = ctx.obj
    parts, store = _load_parts(cli)
    if store.problem:
        cli.console.warning(one_line(store.problem))
    if json:
        cli.console.json(
            {"schema": 1, "parts": [{**setting_to_json(part), **_coverage_to_json(part, store)} for part in parts]}
        )
    elif parts:
        rows = [
            (_get_state(part), one_line(part.pointer), _format_location(part), _describe_effect(part)) for part in parts
        ]
        heading = ("DECISION", "SETTING", "WHERE", "WOULD")
        cli.console.table([heading, *rows], styles=["bold", *(_DECISION_STYLES[_get_state(part)] for part in parts)])
    else:
        cli.console.message("No setting here needs your approval.")
    for part in () if json else parts:
        if part.decision == "allowed" and (text := describe_uncovered_code(store.approved_content(part) or "")):
            cli.console.warning(one_line(f"your approval of {part.pointer} does not cover everything: {text}"))
    if any(map(is_waiting, parts)):
        cli.console.message("Decide with: nexus trust allow, nexus trust deny")


@app.command(epilog="\b\nExamples:\n  nexus trust allow\n  nexus trust allow github --yes")
def allow(
    ctx: typer.Context,
    pointers: SettingsArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Approve everything that waits.")] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Approve settings exactly as they are now.

    All of what they would do is shown before; any change asks again. With --yes and no SETTING, everything that waits
    is listed and then allowed.
    """
    cli: CliContext = ctx.obj
    parts, store = _load_parts(cli)
    open_parts = parts if pointers else [part for part in parts if not is_disabled(part)]
    wanted = _choose_parts(open_parts, pointers, everything=everything, undecided=OPEN_DECISIONS)
    chosen = [part for part in wanted if part.decision != "allowed"]
    if not chosen:
        cli.console.message("Nothing to allow." if not wanted else "Already allowed.")
        return
    # What is shown is what is allowed, even if files change before the answer.
    chosen = [replace(part, content=add_code_digests(part.content, is_fresh=True)) for part in chosen]
    if dry_run:
        _print_parts(cli, store, chosen)
        cli.console.message("Nothing was allowed.")
        return
    store.check()  # before the question, so that no answer is lost
    if yes:
        _print_parts(cli, store, chosen)
        _allow_parts(cli, store, chosen)
        return
    if not cli.can_ask:
        raise UsageError(
            "there is no terminal to ask on, so nothing was allowed",
            hint="check `nexus trust status`, then pass --yes, with the settings to allow or without for all of them",
        )
    for part in chosen:
        _print_parts(cli, store, [part])
        if cli.agrees("Allow it?"):
            _allow_parts(cli, store, [part])
        else:
            cli.console.message(f"Left {one_line(part.pointer)} as it was.")


def _allow_parts(cli: CliContext, store: TrustStore, parts: Sequence[ActiveSetting]) -> None:
    store.allow(parts)
    for part in parts:
        cli.console.message(f"Allowed {one_line(part.pointer)}.")


@app.command(epilog="\b\nExamples:\n  nexus trust deny github\n  nexus trust deny --all")
def deny(
    ctx: typer.Context,
    pointers: SettingsArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Deny everything that is not denied yet.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Deny settings and all later versions of them."""
    cli: CliContext = ctx.obj
    parts, store = _load_parts(cli)
    if not pointers and not everything:
        raise UsageError("no setting was named", hint="name settings as `nexus trust status` does, or pass --all")
    wanted = _choose_parts(parts, pointers, everything=everything, undecided={*OPEN_DECISIONS, "allowed"})
    chosen = [part for part in wanted if part.decision != "denied"]
    if not dry_run:
        store.deny(chosen)
    for part in chosen:
        done = "Would deny" if dry_run else "Denied"
        cli.console.message(f"{done} {one_line(part.pointer)} in {_format_location(part)}.")
    if not chosen:
        cli.console.message("Nothing to deny." if not wanted else "Already denied.")


@app.command(epilog="\b\nExamples:\n  nexus trust diff\n  nexus trust diff github")
def diff(ctx: typer.Context, pointer: OptionalSettingArgument = None, json: JsonOption = False) -> None:
    """Show how settings changed since you approved them.

    Exits with 1 if something did.
    """
    cli: CliContext = ctx.obj
    parts, store = _load_parts(cli)
    chosen = _choose_parts(parts, [pointer] if pointer else None, everything=False, undecided=OPEN_DECISIONS)
    changes = [(part, lines) for part in chosen if (lines := _list_changes(part, store))]
    if json:
        cli.console.json(
            {"schema": 1, "changes": [{**setting_to_json(part), "diff": lines} for part, lines in changes]}
        )
    elif changes:
        cli.console.text("\n".join(line for _, lines in changes for line in lines))
    else:
        cli.console.message("Nothing differs from what you allowed.")
    if changes:
        raise typer.Exit(EXIT_FINDINGS)


def _list_changes(part: ActiveSetting, store: TrustStore) -> list[str]:
    approved = store.approved_content(part)
    if part.decision != "changed" or approved is None:
        return []
    name = f"{one_line(part.pointer)} in {_format_location(part)}"
    present = add_code_digests(part.content)
    lines = diff_contents(approved, present, approved_name=f"allowed {name}", present_name=f"present {name}")
    return [*lines, *_list_changed_files(approved, present)]


def _list_changed_files(approved: str, present: str) -> list[str]:
    """Return the files of a program that differ, one in a line."""
    if predates_code_coverage(approved, present):
        return ["approved before approvals covered the code of programs: " + describe_covered_code(present)]
    differences = compare_code(approved, present)
    words = zip(("changed", "added", "removed"), differences, strict=True)
    return [one_line(f"file {word}: {name}") for word, names in words for name in names]


def _coverage_to_json(part: ActiveSetting, store: TrustStore) -> dict[str, str]:
    """Return the code that an approval covers and does not cover, for programs."""
    content = store.approved_content(part) or "" if part.decision == "allowed" else ""
    found = {"covered": describe_covered_code(content), "uncovered": describe_uncovered_code(content)}
    return {key: text for key, text in found.items() if text}


def _load_parts(cli: CliContext) -> tuple[tuple[ActiveSetting, ...], TrustStore]:
    """Return the active settings of a project, each with the decision about all of its code."""
    with cli.nexus() as nexus:
        store = TrustStore(nexus.home, workspace=find_workspace(nexus.cwd))
        parts = nexus.load().active
        return tuple(replace(part, decision=store.decide(part)) for part in parts), store


def _choose_parts(
    parts: Sequence[ActiveSetting], pointers: Sequence[str] | None, *, everything: bool, undecided: Collection[str]
) -> list[ActiveSetting]:
    """Return the named settings in order, or without names, those with a decision in `undecided`."""
    if not pointers:
        return [part for part in parts if part.decision in undecided]
    if everything:
        raise UsageError("settings were named, and --all as well", hint="leave out one of them")
    pointers_by_name = _index_pointers(parts)
    for name in pointers:
        if name not in pointers_by_name:
            alike = {part.pointer if "/" in name else _get_short_name(part) for part in parts}
            raise UnknownNameError("active setting", one_line(name), map(one_line, alike))
    named = {pointers_by_name[name] for name in pointers}
    return [part for part in parts if part.pointer in named]


def _index_pointers(parts: Sequence[ActiveSetting]) -> dict[str, str]:
    """Return pointers by all accepted names: with and without the first slash, and by server name."""
    names = {_get_short_name(part): part.pointer for part in parts}
    names |= {part.pointer.removeprefix("/"): part.pointer for part in parts}
    return names | {part.pointer: part.pointer for part in parts}


def _get_short_name(part: ActiveSetting) -> str:
    setting, *keys = split_pointer(part.pointer)
    return keys[0] if setting == SERVERS and len(keys) == 1 else part.pointer


def _print_parts(cli: CliContext, store: TrustStore, parts: Sequence[ActiveSetting]) -> None:
    for part in parts:
        cli.console.message(f"{one_line(part.pointer)} in {_format_location(part)}", style="bold")
        cli.console.message(f"  This would {name_effect(part.content)}: {one_line(part.summary)}")
        if covered := describe_covered_code(part.content):
            what = "It runs code of the project, which you approve as it is"
            what = what if runs_project_code(part.content) else "You approve these files as they are"
            cli.console.message(f"  {what}: {one_line(covered)}")
        if uncovered := describe_uncovered_code(part.content):
            cli.console.warning(f"  Your approval would not cover everything: {one_line(uncovered)}")
        if part.decision == "changed" and predates_code_coverage(store.approved_content(part) or "", part.content):
            cli.console.message("  You allowed it before approvals covered this code, so you are asked once more.")
        elif part.decision == "changed":
            cli.console.message("  You allowed something else here before; `nexus trust diff` shows what changed.")
        if part.decision == "denied":
            cli.console.message("  You denied it before.")


def _format_location(part: ActiveSetting) -> str:
    return one_line(f"{part.path}:{part.line}" if part.line else str(part.path))


def _describe_effect(part: ActiveSetting) -> str:
    return f"{name_effect(part.content)} {summarize_setting(part)}"


def _get_state(part: ActiveSetting) -> str:
    """Return the state of a decision for display. A disabled server needs no decision."""
    return "disabled" if part.decision in OPEN_DECISIONS and is_disabled(part) else part.decision
