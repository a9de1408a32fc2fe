"""`nexus trust status|allow|deny|diff`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.exits import FINDINGS
from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.config.pointers import split_pointer
from nexus_core.config.servers import SETTING as SERVERS
from nexus_core.errors import ConfigError, UnknownNameError, UsageError
from nexus_core.files.places import workspace_of
from nexus_core.trust.comparison import compare
from nexus_core.trust.coverage import compare_code, describe_covered, describe_uncovered, is_outdated, measure
from nexus_core.trust.fingerprint import effect, one_line, runs_own_code
from nexus_core.trust.mentioning import OPEN, describe, is_off, is_waiting, mention
from nexus_core.trust.store import TrustStore

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nexus_core.cli.shell import CommandShell
    from nexus_core.text.console import Style
    from nexus_core.values.trust import ActivePart

app = typer.Typer(
    help="Decide what a project may start or connect to.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus trust status\n  nexus trust allow",
)

_STYLES: dict[str, Style] = {
    "allowed": "green",
    "denied": "dim",
    "disabled": "dim",
    "pending": "yellow",
    "changed": "red",
}

_NAMES = "As `status` names it; a server's own name will do."


def _known_pointers(ctx: typer.Context) -> list[str]:
    from nexus_core.text.written_secrets import completable_names  # noqa: PLC0415 - only while a name is typed

    return completable_names(part.pointer for part in _load(ctx.find_root().obj)[0])


Pointers = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SETTING]...", help=f"Settings. {_NAMES}", autocompletion=_known_pointers),
]
Pointer = Annotated[
    str | None, typer.Argument(metavar="[SETTING]", help=f"A setting. {_NAMES}", autocompletion=_known_pointers)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; without SETTING, allow all that wait.")]


@app.command(epilog="\b\nExamples:\n  nexus trust status\n  nexus -C services/auth trust status --json")
def status(ctx: typer.Context, json: Json = False) -> None:
    """List what the project would start, connect to or set.

    Each with where it stands, what you decided about it, and what your approval does not cover.
    """
    shell: CommandShell = ctx.obj
    parts, store = _load(shell)
    if store.problem:
        shell.console.warning(one_line(store.problem))
    if json:
        shell.console.json({"schema": 1, "parts": [{**describe(part), **_coverage(part, store)} for part in parts]})
    elif parts:
        rows = [(_state(part), one_line(part.pointer), _where(part), _what(part)) for part in parts]
        heading = ("DECISION", "SETTING", "WHERE", "WOULD")
        shell.console.table([heading, *rows], styles=["bold", *(_STYLES[_state(part)] for part in parts)])
    else:
        shell.console.message("No setting here needs your approval.")
    for part in () if json else parts:
        if part.decision == "allowed" and (text := describe_uncovered(store.approved_content(part) or "")):
            shell.console.warning(one_line(f"your approval of {part.pointer} does not cover everything: {text}"))
    if any(map(is_waiting, parts)):
        shell.console.message("Decide with: nexus trust allow, nexus trust deny")


@app.command(epilog="\b\nExamples:\n  nexus trust allow\n  nexus trust allow github --yes")
def allow(
    ctx: typer.Context,
    pointers: Pointers = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything not yet allowed or denied.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Allow settings exactly as they are now.

    All of what they would do is shown before; any change asks again. With --yes and no SETTING, everything that waits
    is listed and then allowed.
    """
    shell: CommandShell = ctx.obj
    parts, store = _load(shell)
    open_parts = parts if pointers else [part for part in parts if not is_off(part)]
    wanted = _choose(open_parts, pointers, everything=everything, undecided=OPEN)
    chosen = [part for part in wanted if part.decision != "allowed"]
    if not chosen:
        shell.console.message("Nothing to allow." if not wanted else "Already allowed.")
        return
    # What is shown is what is allowed, even if files change while somebody thinks about it.
    chosen = [replace(part, content=measure(part.content, is_fresh=True)) for part in chosen]
    if dry_run:
        _show(shell, store, chosen)
        shell.console.message("Nothing was allowed.")
        return
    store.check()  # before somebody answers in vain
    if yes:
        _show(shell, store, chosen)
        _allow(shell, store, chosen)
        return
    if not shell.can_ask:
        raise ConfigError(
            "there is no terminal to ask on, so nothing was allowed",
            hint="check `nexus trust status`, then pass --yes, with the settings to allow or without for all of them",
        )
    for part in chosen:
        _show(shell, store, [part])
        if shell.agrees("Allow it?"):
            _allow(shell, store, [part])
        else:
            shell.console.message(f"Left {one_line(part.pointer)} as it was.")


def _allow(shell: CommandShell, store: TrustStore, parts: Sequence[ActivePart]) -> None:
    store.allow(parts)
    for part in parts:
        shell.console.message(f"Allowed {one_line(part.pointer)}.")


@app.command(epilog="\b\nExamples:\n  nexus trust deny github\n  nexus trust deny --all")
def deny(
    ctx: typer.Context,
    pointers: Pointers = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything not yet denied.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Deny settings, whatever they will be changed to."""
    shell: CommandShell = ctx.obj
    parts, store = _load(shell)
    if not pointers and not everything:
        raise UsageError("no setting was named", hint="name settings as `nexus trust status` does, or pass --all")
    wanted = _choose(parts, pointers, everything=everything, undecided={*OPEN, "allowed"})
    chosen = [part for part in wanted if part.decision != "denied"]
    if not dry_run:
        store.deny(chosen)
    for part in chosen:
        done = "Would deny" if dry_run else "Denied"
        shell.console.message(f"{done} {one_line(part.pointer)} in {_where(part)}.")
    if not chosen:
        shell.console.message("Nothing to deny." if not wanted else "Already denied.")


@app.command(epilog="\b\nExamples:\n  nexus trust diff\n  nexus trust diff github")
def diff(ctx: typer.Context, pointer: Pointer = None, json: Json = False) -> None:
    """Show what changed in settings since you allowed them.

    Exits with 1 if something did.
    """
    shell: CommandShell = ctx.obj
    parts, store = _load(shell)
    chosen = _choose(parts, [pointer] if pointer else None, everything=False, undecided=OPEN)
    changes = [(part, lines) for part in chosen if (lines := _changes(part, store))]
    if json:
        shell.console.json({"schema": 1, "changes": [{**describe(part), "diff": lines} for part, lines in changes]})
    elif changes:
        shell.console.text("\n".join(line for _, lines in changes for line in lines))
    else:
        shell.console.message("Nothing differs from what you allowed.")
    if changes:
        raise typer.Exit(FINDINGS)


def _changes(part: ActivePart, store: TrustStore) -> list[str]:
    approved = store.approved_content(part)
    if part.decision != "changed" or approved is None:
        return []
    name = f"{one_line(part.pointer)} in {_where(part)}"
    present = measure(part.content)
    lines = compare(approved, present, approved_name=f"allowed {name}", present_name=f"present {name}")
    return [*lines, *_changed_files(approved, present)]


def _changed_files(approved: str, present: str) -> list[str]:
    """The files of a program that differ, one in a line."""
    if is_outdated(approved, present):
        return ["approved before approvals covered the code of programs: " + describe_covered(present)]
    differences = compare_code(approved, present)
    words = zip(("changed", "added", "removed"), differences, strict=True)
    return [one_line(f"file {word}: {name}") for word, names in words for name in names]


def _coverage(part: ActivePart, store: TrustStore) -> dict[str, str]:
    """The code that an approval covers and does not cover, for programs."""
    content = store.approved_content(part) or "" if part.decision == "allowed" else ""
    found = {"covered": describe_covered(content), "uncovered": describe_uncovered(content)}
    return {key: text for key, text in found.items() if text}


def _load(shell: CommandShell) -> tuple[tuple[ActivePart, ...], TrustStore]:
    """The parts of a project, each with what was decided about all of its code."""
    with shell.nexus() as nexus:
        store = TrustStore(nexus.home, workspace=workspace_of(nexus.cwd))
        parts = nexus.load().active
        return tuple(replace(part, decision=store.decide(part)) for part in parts), store


def _choose(
    parts: Sequence[ActivePart], pointers: Sequence[str] | None, *, everything: bool, undecided: Collection[str]
) -> list[ActivePart]:
    """The parts that were named, in order; without names, those whose decision is among `undecided`."""
    if not pointers:
        return [part for part in parts if part.decision in undecided]
    if everything:
        raise UsageError("settings were named, and --all as well", hint="leave out one of them")
    pointers_by_name = _by_name(parts)
    for name in pointers:
        if name not in pointers_by_name:
            alike = {part.pointer if "/" in name else _short_name(part) for part in parts}
            raise UnknownNameError("active setting", one_line(name), map(one_line, alike))
    named = {pointers_by_name[name] for name in pointers}
    return [part for part in parts if part.pointer in named]


def _by_name(parts: Sequence[ActivePart]) -> dict[str, str]:
    """The pointers of parts by all of their names: with the first slash, without it, and the name of a server."""
    names = {_short_name(part): part.pointer for part in parts}
    names |= {part.pointer.removeprefix("/"): part.pointer for part in parts}
    return names | {part.pointer: part.pointer for part in parts}


def _short_name(part: ActivePart) -> str:
    setting, *keys = split_pointer(part.pointer)
    return keys[0] if setting == SERVERS and len(keys) == 1 else part.pointer


def _show(shell: CommandShell, store: TrustStore, parts: Sequence[ActivePart]) -> None:
    for part in parts:
        shell.console.message(f"{one_line(part.pointer)} in {_where(part)}", style="bold")
        shell.console.message(f"  This would {effect(part.content)}: {one_line(part.summary)}")
        if covered := describe_covered(part.content):
            what = "It runs code of the project, which you approve as it is"
            what = what if runs_own_code(part.content) else "You approve these files as they are"
            shell.console.message(f"  {what}: {one_line(covered)}")
        if uncovered := describe_uncovered(part.content):
            shell.console.warning(f"  Your approval would not cover everything: {one_line(uncovered)}")
        if part.decision == "changed" and is_outdated(store.approved_content(part) or "", part.content):
            shell.console.message("  You allowed it before approvals covered this code, so you are asked once more.")
        elif part.decision == "changed":
            shell.console.message("  You allowed something else here before; `nexus trust diff` shows what changed.")
        if part.decision == "denied":
            shell.console.message("  You denied it before.")


def _where(part: ActivePart) -> str:
    return one_line(f"{part.path}:{part.line}" if part.line else str(part.path))


def _what(part: ActivePart) -> str:
    return f"{effect(part.content)} {mention(part)}"


def _state(part: ActivePart) -> str:
    """What there is to say about the decision: about a server that is switched off, none is needed."""
    return "disabled" if part.decision in OPEN and is_off(part) else part.decision
