"""`nexus memory search|list|show|add|forget|why`."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.context import EXIT_FINDINGS, load_readable_layers
from nexus_core.cli.forget_plan import (
    SHOWN_CHARACTERS,
    ForgetPlan,
    ForgetVerification,
    apply_forget_plan,
    build_forget_plan,
    list_given_sessions,
    read_forget_target,
    verify_forgotten,
)
from nexus_core.cli.input import STANDARD_INPUT, read_input_text
from nexus_core.cli.memory_lookup import (
    STEP_PREFIX,
    InjectedMemoryIndex,
    MemoryCatalog,
    NamedTarget,
    list_all_injected,
    looks_like_path,
    print_damage,
    print_memory_findings,
    resolve_memory_name,
)
from nexus_core.cli.model_window import open_model_window
from nexus_core.cli.options import DryRunOption, FacetOption, JsonOption, build_limit_option
from nexus_core.cli.output import format_time
from nexus_core.cli.session_lookup import LedgerOption, build_session_option, find_session, open_ledger_nexus
from nexus_core.errors import UsageError
from nexus_core.memory.forgotten_memories import restore_forgotten
from nexus_core.memory.recall import (
    list_source,
    memory_to_json,
    read_memory_options,
    search_memories,
)
from nexus_core.request.memories import find_injectable_ids, list_injected_memories
from nexus_core.text.console import format_count
from nexus_core.text.safety import shorten, visible_line
from nexus_core.text.secrets import redact, secrets_in
from nexus_core.types.memory import Memory
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nexus_core.cli.commands.session.overview import DamagedSession
    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus

_PASSWORD = re.compile(r"[A-Za-z][\w+.-]*://[^/?#\s@]*:[^/?#\s]*@")
"""The beginning of an address with a password, however short."""

app = typer.Typer(
    help="Search, add and forget memories.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus memory add 'Deploy on Fridays only.'\n  nexus memory search 'when do we deploy?'",
)

_DEFAULT_LIMIT = 20
_MS_PER_DAY = 86_400_000
_MEMORY_IS_OFF = "Memory is off, so none is sent: `nexus config set memory.enabled true --global` switches it on."
_HEADING = ("ID", "KIND", "WHEN", "SOURCE")
AllOption = Annotated[bool, typer.Option("--all", help="Include the memories of all directories.")]
LimitOption = Annotated[int, build_limit_option("List at most N memories.")]
SessionOption = Annotated[str, build_session_option("Only in this session; in all of them by default.")]
WordsArgument = Annotated[str, typer.Argument(metavar="WORDS", help="A question or some words.")]
IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The memory, by its id, its title, its file, or its step.")
]

_MAX_REPEATED = 20
"""Places that `forget` prints because they may still say the same."""


@app.command(
    epilog="\b\nExamples:\n  nexus memory search 'where is the auth middleware?'\n"
    "  nexus memory search deploy --all --facet command"
)
def search(
    ctx: typer.Context,
    words: WordsArgument,
    *,
    everywhere: AllOption = False,
    facet: FacetOption = [],  # noqa: B006 - Typer copies it
    limit: LimitOption = _DEFAULT_LIMIT,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Search all memory sources for words.

    The best match comes first, with the reason for it. SENT says if it would be injected into a message with these
    words: a memory that covers too little of the message is not, nor is one that the session has read already. Notes
    and guides have no facets: --facet finds turns, and rules of the user.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        request, loaded = nexus.request(), cli.load_readable(nexus)
        found = search_memories(
            nexus.host, request, loaded, nexus.ledger, words, limit=limit, everywhere=everywhere, facets=facet
        )
        is_on = read_memory_options(loaded.settings).enabled
        sent: set[str] = set()
        if is_on and found.memories:
            count = open_model_window(nexus, loaded.settings).counter.count
            sent = find_injectable_ids(nexus.host, request, loaded, nexus.ledger, words, count=count)
    print_memory_findings(cli, found.findings)
    _print_memories(cli, found.memories, json=json, with_reason=True, sent=sent if is_on or json else None)
    if json:
        return
    if not is_on:
        cli.console.message(_MEMORY_IS_OFF)
    elif found.memories:
        count_sent = sum(each.id in sent for each in found.memories)
        cli.console.message(f"SENT: {count_sent} of {len(found.memories)} would be sent with such a message.")


@app.command("list", epilog="\b\nExamples:\n  nexus memory list\n  nexus memory list --all")
def list_memories(
    ctx: typer.Context,
    *,
    everywhere: AllOption = False,
    limit: LimitOption = _DEFAULT_LIMIT,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """List notes, preferences and guides.

    A rule that was stated several times is listed once, with the newest step; --json has each. Turns of earlier
    sessions are not listed: `nexus session list` has them.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        catalog = MemoryCatalog(cli, nexus, everywhere=everywhere)
        memories = [memory for _, memory in catalog.list_all(cli)]
    if not json:
        memories = _drop_repeated_rules(memories)
    _print_memories(cli, memories[:limit], json=json)
    if not json and len(memories) > limit:
        cli.console.message(f"{len(memories) - limit:,} more; --limit all lists them.")
    if not json and not catalog.options.enabled:
        cli.console.message(_MEMORY_IS_OFF)


def _drop_repeated_rules(memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories without older statements of the same rule."""
    newest: dict[str, Memory] = {}
    for memory in sorted(memories, key=lambda each: (-each.time, each.id)):
        if memory.kind == "preference" and not memory.source.is_file:
            newest.setdefault(memory.text.casefold(), memory)
    kept = {each.id for each in newest.values()}
    return [each for each in memories if each.kind != "preference" or each.source.is_file or each.id in kept]


@app.command(epilog="\b\nExamples:\n  nexus memory show 3fa9c1\n  nexus memory show 3fa9c1 --json")
def show(ctx: typer.Context, name: IdArgument, *, ledger: LedgerOption = "", json: JsonOption = False) -> None:
    """Print a memory with its source."""
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        memory = _find_memory(cli, MemoryCatalog(cli, nexus, everywhere=True), name)
    if json:
        cli.console.json({"schema": 1, "memory": memory_to_json(memory)})
        return
    about = [("id", memory.id), ("kind", memory.kind), ("source", memory.place), ("by", memory.origin)]
    about += [("session", memory.session)] if memory.session else []
    about += [("when", when)] if (when := _format_when(memory)) else []
    cli.console.table([(key, visible_line(value)) for key, value in about])
    cli.console.text("")
    cli.console.text(redact(memory.text).text)


@app.command(
    epilog="\b\nExamples:\n  nexus memory add 'Deploy on Fridays only.'\n"
    "  nexus memory add 'Tests need Docker.' --project"
)
def add(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text of the note; - reads standard input.")],
    *,
    title: Annotated[str, typer.Option("--title", metavar="WORDS", help="Name the file after these words.")] = "",
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="note or preference.")] = "note",
    source: Annotated[str, typer.Option("--source", metavar="PLACE", help="The step, file or URL it is from.")] = "",
    project: Annotated[bool, typer.Option("--project", help="Write it into .nexus3 of this directory.")] = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Write a note into your own directory, or into the project's.

    A project's notes are meant to be committed. What looks like a secret is refused, and a text that is noted
    already is not written again. A note that was forgotten is used again.
    """
    cli: CliContext = ctx.obj
    if kind not in ("note", "preference"):
        raise UsageError(f"a note cannot be of the kind {kind!r}", hint="--kind note, or --kind preference")
    if project and kind == "preference":
        raise UsageError("a project cannot state a preference of the user", hint="leave out --project, or --kind")
    if text == STANDARD_INPUT:
        text = read_input_text(Path(), text)[1]
    if not text.strip():
        raise UsageError("there is nothing to note", hint="nexus memory add 'Deploy on Fridays only.'")
    _refuse_secrets(text, title, source)
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        view = MemoryCatalog(cli, nexus)
        store = next((each for each in map(view.sources.get, view.sources) if each.add is not None), None)
        if store is None or store.add is None:
            raise UsageError("no memory source can store a note", hint="`nexus plugin info memory` says why")
        origin = Source(uri=source or "caller:", layer="local" if project else "global")
        new = Memory(text=text, kind="preference" if kind == "preference" else "note", source=origin, title=title)
        noted = None if title else _find_noted(cli, view, new)
        path = noted.source.uri if noted else store.add(replace(new, time=time.time_ns() // 1_000_000))
        was_forgotten = any(view.forgotten) and _restore_forgotten(nexus, view, store.name, path, noted)
        view.print_findings(cli)
    if json:
        cli.console.json({"schema": 1, "path": path, "was_forgotten": was_forgotten})
    else:
        cli.console.message(visible_line(f"Already noted in {path}" if noted else f"Noted in {path}"))
        if was_forgotten:
            cli.console.message("It was forgotten before, and is used again.")
        if not view.options.enabled:
            cli.console.message("Memory is off: `nexus config set memory.enabled true --global` has it sent.")


def _refuse_secrets(text: str, title: str, source: str) -> None:
    """Raise if a note has what looks like a secret.

    Raises:
        UsageError: Its text, title or source has one.
    """
    secrets = {"text": redact(text).counts, "--title": redact(title).counts, "--source": _find_source_secrets(source)}
    for name, kinds in secrets.items():
        if kinds:
            raise UsageError(
                f"the {name} has what looks like a secret ({', '.join(sorted(kinds))}), so it is not written",
                hint="leave the secret out: what is noted is sent to models",
            )


def _find_source_secrets(source: str) -> set[str]:
    """Return the kinds of secrets in a place. An address is checked as strictly as in a command."""
    kinds = {*redact(source).counts}
    return kinds or ({"password"} if _PASSWORD.match(source.strip()) or any(secrets_in([source])) else set())


def _find_noted(cli: CliContext, view: MemoryCatalog, new: Memory) -> Memory | None:
    """Return a note with the same text and layer, not a forgotten one if possible."""
    notes = (memory for _, memory in view.list_with_forgotten(cli) if memory.kind == new.kind and memory.source.is_file)
    same = (each for each in notes if each.text.strip() == new.text.strip() and each.source.layer == new.source.layer)
    return min(same, key=view.forgotten.has, default=None)


def _restore_forgotten(nexus: Nexus, view: MemoryCatalog, source: str, path: str, noted: Memory | None) -> bool:
    """Restore a note that is added again. Return True if it was forgotten."""
    ids = {noted.id} if noted else set[str]()
    if not noted:
        loaded, _ = load_readable_layers(nexus)  # anew: the first note of a project makes a layer of its directory
        sources = nexus.host.memory_sources(view.request, loaded, nexus.ledger)
        memories, _ = list_source(sources.get(source), view.build_query())
        ids = {memory.id for memory in memories if memory.source.uri == path}
    return restore_forgotten(view.request.home, ids=ids, uris={path})


def _find_memory(cli: CliContext, view: MemoryCatalog, name: str) -> Memory:
    """Return the memory with an id that a command prints, a title, a file or a step.

    Raises:
        UsageError: The name is empty, there is none, there are several, or it was forgotten.
    """
    hint = "`nexus memory list --all` and `nexus memory search` print ids"
    if not name.strip():
        raise UsageError("the name of a memory is empty", hint=hint)
    listed = [memory for _, memory in view.list_all(cli)]
    injected_index = InjectedMemoryIndex(view.nexus.ledger, view.forgotten)
    target = resolve_memory_name(view.nexus, name, listed, injected_index, kinds=("memory", "title", "step", "file"))
    found = None if target is None else _read_target(target, listed, injected_index)
    if found is None:
        raise UsageError(f"there is no memory {name!r}", hint=hint)
    was_forgotten = view.forgotten.has(found) or injected_index.is_forgotten(found.source.uri)
    print_damage(cli, injected_index.damaged)
    if was_forgotten:
        raise UsageError(f"the memory {name!r} was forgotten", hint="`nexus session show` prints recorded steps")
    return found


def _read_target(target: NamedTarget, listed: Sequence[Memory], injected_index: InjectedMemoryIndex) -> Memory | None:
    """Return the memory that a name means, or None if its text is lost.

    Raises:
        UsageError: The file has several memories.
    """
    uri = f"{STEP_PREFIX}{target.name}" if target.kind == "step" else target.name
    same = [each for each in listed if target.name == each.id or uri == each.source.uri]
    if len(same) > 1 and target.kind == "file":
        listed_ids = ", ".join(each.id for each in same)
        raise UsageError(f"{target.name} has {len(same):,} memories: {listed_ids}", hint="give the id of one")
    if len(same) == 1 or (same and target.kind == "memory"):
        return same[0]
    source = Source(uri=uri) if target.source is None else target.source
    return injected_index.build_memory(target.name, source)


def _print_memories(
    cli: CliContext,
    memories: Sequence[Memory],
    *,
    json: bool,
    with_reason: bool = False,
    sent: Collection[str] | None = None,
) -> None:
    """Print memories, with those that would be sent marked if `sent` has their ids."""
    if json:
        rows_json = [
            memory_to_json(each) | ({} if sent is None else {"would_be_sent": each.id in sent}) for each in memories
        ]
        cli.console.json({"schema": 1, "memories": rows_json})
        return
    if not memories:
        cli.console.message("Nothing found.")
        return
    heading = (*_HEADING, *(["SENT"] if sent is not None else ()), *(["WHY"] if with_reason else ()), "TEXT")
    rows = [
        (
            each.id,
            each.kind,
            _format_when(each) or "-",
            visible_line(each.place),
            *(["yes" if each.id in sent else "no"] if sent is not None else ()),
            *([visible_line(each.reason)] if with_reason else ()),
            _format_text(each, SHOWN_CHARACTERS if cli.console.is_terminal else None),
        )
        for each in memories
    ]
    cli.console.table([heading, *rows], styles=["bold"])


def _format_text(memory: Memory, limit: int | None) -> str:
    """Return the text of a memory in one line; None for a text of any length."""
    text = " ".join(redact(memory.text).text.split())
    return visible_line(text if limit is None else shorten(text, limit))


def _format_when(memory: Memory) -> str:
    """Return the time when a memory was written, the date alone, or ""."""
    if memory.source.is_file and memory.time % _MS_PER_DAY == 0:
        return time.strftime("%Y-%m-%d", time.gmtime(memory.time // 1000)) if memory.time else ""
    return format_time(memory.time) if memory.time else ""


# ---- why ------------------------------------------------------------------------------------------------------------


@app.command(epilog="\b\nExamples:\n  nexus memory why 3fa9c1\n  nexus memory why --session auth-bug")
def why(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[ID]", help="The memory, by its id; all by default.")] = "",
    *,
    session: SessionOption = "",
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Say why a memory is in a session, and where.

    For each memory that was sent: its source, the words that matched, the session, the step that recorded it, and if
    later calls still have it.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        damaged: list[DamagedSession] = []
        listed = (
            list_injected_memories(nexus.ledger, find_session(nexus.ledger, session))
            if session
            else list_all_injected(nexus.ledger, damaged)
        )
        found = [each for each in listed if each.id.startswith(name)]
    print_damage(cli, damaged)
    if json:
        cli.console.json({"schema": 1, "injected": [each.to_json() for each in found]})
    elif found:
        rows = [
            (
                each.id,
                visible_line(each.place),
                visible_line(each.reason) or "-",
                visible_line(each.session),
                each.step,
                "yes" if each.is_sent else "no",
            )
            for each in found
        ]
        cli.console.table([("ID", "SOURCE", "WHY", "SESSION", "STEP", "SENT"), *rows], styles=["bold"])
    else:
        cli.console.message(f"No memory {name!r} was sent." if name else "No memory was sent.")
    if not found:
        raise typer.Exit(EXIT_FINDINGS)


# ---- forget ---------------------------------------------------------------------------------------------------------


@app.command(
    epilog="\b\nExamples:\n  nexus memory forget 3fa9c1 --dry-run\n  nexus memory forget 'deploy on Fridays' --yes"
)
def forget(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="X", help="A memory, a step, a session, a note, or a text.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
    ledger: LedgerOption = "",
    json: JsonOption = False,
) -> None:
    """Remove memories, and leave them out of later calls.

    Notes are deleted, preferences and guides are not used any more, steps are removed from the search index with the
    summaries made of them, and sessions that were given one leave it out of their next calls. Replies to messages that
    had it and that share its distinctive words are removed, too. Then the questions that found it are asked again, and
    places that may still say it are named. What was recorded in the ledger stays there until you delete the session.
    """
    cli: CliContext = ctx.obj
    with open_ledger_nexus(ctx, ledger, writes=True) as nexus:
        view = MemoryCatalog(cli, nexus, everywhere=True)
        # A command that was interrupted has them on the list already, and is run again.
        listed = view.list_with_forgotten(cli)
        view.print_findings(cli)
        injected_index = InjectedMemoryIndex(nexus.ledger)
        with cli.console.progress(None, "Searching", unit="steps") as progress:
            memories = [memory for _, memory in listed]
            selection = read_forget_target(nexus, target, memories, injected_index, advance=progress.advance)
        if selection.text and looks_like_path(nexus, target):
            cli.console.warning(visible_line(f"{target!r} is not a note, so it is a text that memories may have"))
        plan = build_forget_plan(nexus, injected_index, selection, listed)
        if not plan.matched and not plan.injected and not selection.uris and not selection.recorded_uris:
            cli.console.message(visible_line(f"No memory has {target!r}, and no session was given one."))
            raise typer.Exit(EXIT_FINDINGS)
        is_done = not dry_run and (yes or _confirm(cli, plan))
        removed = apply_forget_plan(nexus, plan, injected_index.damaged) if is_done else []
        proof = verify_forgotten(nexus, injected_index, plan) if is_done else ForgetVerification()
    print_damage(cli, injected_index.damaged)
    limits = proof.limits if is_done else plan.limits
    stays = sorted({*plan.holders, *list_given_sessions(plan.injected), *filter(None, [selection.session])})
    if json:
        facts = {"schema": 1, "target": selection.what, "dry_run": dry_run, "forgotten": is_done}
        ids = sorted({memory.id for _, memory in plan.matched} | {each.id for each in plan.sent_memories})
        facts |= {
            "deleted_files": removed,
            "ids": ids,
            "steps": sorted(plan.steps),
            "sessions": list_given_sessions(plan.sent_memories),
            "stays_in": stays,
            "limits": limits,
        }
        if is_done:
            places = [*proof.repeated, *dict.fromkeys(each.step for each in proof.summaries.values())]
            facts |= {"queries": len(plan.queries), "still_found": proof.returned, "may_repeat": places}
            facts["summaries"] = [*proof.summaries]
        cli.console.json(facts)
    if is_done or dry_run:
        _print_forgotten(cli, plan, stays, is_done=is_done, has_asked=is_done and not yes)
    else:
        cli.console.message("Nothing was forgotten.")
    if is_done:
        _print_proof(cli, len(plan.queries), proof)
    if is_done or dry_run:
        _print_limits(cli, limits)
    if proof.returned or proof.repeated or proof.summaries:
        raise typer.Exit(EXIT_FINDINGS)


def _confirm(cli: CliContext, plan: ForgetPlan) -> bool:
    if not cli.can_ask:
        hint = "look at it with --dry-run, then pass --yes"
        raise UsageError("there is no terminal to ask on, so nothing was forgotten", hint=hint)
    _print_places(cli, plan)
    return cli.agrees("Forget it?")


def _print_places(cli: CliContext, plan: ForgetPlan) -> None:
    for place, *details in plan.describe():
        cli.console.message(visible_line(f"  {place}"))
        for detail in details:
            cli.console.message(visible_line(f"    {detail}"))


def _print_forgotten(
    cli: CliContext, plan: ForgetPlan, stays: Sequence[str], *, is_done: bool, has_asked: bool
) -> None:
    count = format_count(len(plan.describe()), "item")
    cli.console.message(f"{'Forgotten' if is_done else 'Would be forgotten'}: {count}.")
    if not has_asked:
        _print_places(cli, plan)
    for label in stays:
        where = "in its conversation and in the ledger" if label in plan.holders else "in the ledger"
        what = f"the recorded steps of session {label} stay {where}"
        cli.console.warning(visible_line(f"{what}; `nexus session delete {quote(label)}` erases them"))


# ---- proof ----------------------------------------------------------------------------------------------------------


def _print_proof(cli: CliContext, queries: int, proof: ForgetVerification) -> None:
    if proof.returned:
        cli.console.warning(f"{format_count(queries, 'question')} asked again, and found: {', '.join(proof.returned)}")
    if proof.repeated:
        count = format_count(len(proof.repeated), "other place")
        cli.console.warning(
            f"{count} may still say it; `nexus memory forget {next(iter(proof.repeated))}` forgets one:"
        )
        for name, text in [*proof.repeated.items()][:_MAX_REPEATED]:
            cli.console.message(visible_line(f"  {name}: {text}"))
        if len(proof.repeated) > _MAX_REPEATED:
            cli.console.message(f"  {len(proof.repeated) - _MAX_REPEATED:,} more; --json lists them")
    for label, summary in proof.summaries.items():
        what = f"the summary in the calls of session {label} may still say it: {summary.excerpt}"
        cli.console.warning(visible_line(what))
        hint = f"`nexus session compact {quote(label)} --undo`, then forget it again and compact again"
        cli.console.message(
            visible_line(f"  {hint}; `nexus session delete {quote(label)}` if the new one says it, too")
        )
    if queries and not (proof.returned or proof.repeated or proof.summaries):
        cli.console.message(f"{format_count(queries, 'question')} that could find it asked again: none does.")


def _print_limits(cli: CliContext, limits: Sequence[str]) -> None:
    if limits:
        cli.console.warning(f"not everything can be compared: {'; '.join(limits)}")
