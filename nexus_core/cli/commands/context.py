"""`nexus context`: the tokens of a request, and of each part of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.commands.context_shares import (
    FRAMING,
    build_share_tree,
    find_sent_memories,
    format_share_tree,
    split_prompt,
    split_request,
)
from nexus_core.cli.context import EXIT_FINDINGS
from nexus_core.cli.input import STANDARD_INPUT, note_unread_input
from nexus_core.cli.model_window import contains_only_text, describe_bytes, open_model_window
from nexus_core.cli.options import (
    AgentFileOption,
    AgentOption,
    JsonOption,
    RequireTrustedOption,
    build_limit_option,
    build_model_option,
    check_agent_files,
)
from nexus_core.cli.output import TokenRow, excerpt_message, limit_rows, print_token_bars
from nexus_core.cli.session_lookup import (
    LedgerOption,
    build_session_option,
    find_session,
    get_session_names,
    match_session,
    open_ledger_nexus,
    open_session_nexus,
)
from nexus_core.errors import UsageError, did_you_mean
from nexus_core.layers import OWN_PROFILE
from nexus_core.rendering import render_section
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.types.prompt import format_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.cli.commands.context_shares import RequestShares, SentMemory, TokenShare
    from nexus_core.cli.context import CliContext
    from nexus_core.cli.model_window import ModelWindow
    from nexus_core.nexus import Nexus
    from nexus_core.session.session import Session
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Message
    from nexus_core.types.settings import Settings

app = typer.Typer()

FileArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]", help="A transcript or list of messages; - is standard input. Or a session, by its name."
    ),
]
ModelOption = Annotated[
    str, build_model_option("The model to count for; by default the transcript's, else provider.model.")
]
TopOption = Annotated[int, build_limit_option("List at most N tools and messages.")]
SessionOption = Annotated[str, build_session_option("Show what a session would send now, instead of a file.")]
TreeOption = Annotated[
    bool, typer.Option("--tree", help="A tree from zones down to sections, instead of bars; not for a FILE.")
]
IncludeCompactedOption = Annotated[bool, typer.Option("--include-compacted", help="Count compacted messages, too.")]

EXAMPLES = """
\b
Examples:
  nexus context                          choose one of your newest conversations
  nexus context session.jsonl -m gpt-4o  a transcript, counted for another model
"""


class ContextArguments(NamedTuple):
    """Arguments of `nexus context` about a request."""

    model: str
    session: str
    ledger: str
    profile: str
    files: tuple[str, ...]
    top: int
    tree: bool
    json: bool
    require_trusted: bool


_DEFAULT_TOP = 10
_NO_ARGUMENTS = ContextArguments(
    model="",
    session="",
    ledger="",
    profile=OWN_PROFILE,
    files=(),
    top=_DEFAULT_TOP,
    tree=False,
    json=False,
    require_trusted=False,
)


@app.command(epilog=EXAMPLES)
def context(
    ctx: typer.Context,
    file: FileArgument = None,
    *,
    session: SessionOption = "",
    model: ModelOption = "",
    top: TopOption = _DEFAULT_TOP,
    tree: TreeOption = False,
    everything: IncludeCompactedOption = False,
    profile: AgentOption = OWN_PROFILE,
    agent_file: AgentFileOption = None,
    ledger: LedgerOption = "",
    json: JsonOption = False,
    require_trusted: RequireTrustedOption = False,
) -> None:
    """Show how the tokens of a request or transcript are used.

    FILE may be a session of another agent, such as Claude Code or Codex, a ChatGPT export, or the messages or request
    of any API. It is only read, and shown by role, kind, tool and message. Without such a file, it is the name of a
    session. Without any argument, the newest transcripts of other agents on this machine are offered at a terminal.
    Elsewhere, or with -C ., the request of this directory or of a session is shown by zone, kind, layer, section and
    tool, with the free space and what was left out. Exits with 1 if it does not fit the model's window.
    """
    cli: CliContext = ctx.obj
    wanted = ContextArguments(
        model=model,
        session=session,
        ledger=ledger,
        profile=profile,
        files=check_agent_files(profile, agent_file),
        top=top,
        tree=tree,
        json=json,
        require_trusted=require_trusted,
    )
    if file is not None and not session and profile == OWN_PROFILE and (named := _find_session(ctx, file, ledger)):
        file, wanted = None, wanted._replace(session=named)
    _check_options(file, wanted, everything=everything)
    if file != STANDARD_INPUT:
        note_unread_input(cli, "nexus context -")
    if file is None and not cli.is_directory_named and wanted == _NO_ARGUMENTS._replace(model=model, top=top):
        from nexus_core.cli.commands.context_menu import choose_transcript

        file = choose_transcript(cli)
    if file is None:
        show_request_tokens(ctx, wanted)
    else:
        from nexus_core.cli.commands.context_transcript import show_transcript_tokens

        show_transcript_tokens(cli, file, model, top=top, everything=everything, json=json)


def _find_session(ctx: typer.Context, name: str, ledger: str) -> str:
    """Return the session of a name that is no file's, or "" for a file.

    Raises:
        UsageError: There is neither.
    """
    cli: CliContext = ctx.obj
    if name == STANDARD_INPUT or os.path.lexists(cli.cwd / name):
        return ""
    with open_ledger_nexus(ctx, ledger) as nexus:
        record = match_session(nexus.ledger, name)
        if record is not None:
            return record.label
        hint = did_you_mean(name, get_session_names(nexus.ledger)) or "`nexus session list` lists the sessions"
    raise UsageError("no such file or session", where=name, hint=hint)


def _check_options(file: str | None, wanted: ContextArguments, *, everything: bool) -> None:
    is_foreign = wanted.profile != OWN_PROFILE
    if file is None and everything:
        raise UsageError("--include-compacted needs a transcript", hint="name the FILE")
    if file is None and wanted.session and is_foreign:
        raise UsageError("no other agent reads a session of Nexus", hint="leave out --session or --as")
    if file is not None and (wanted.session or wanted.tree or is_foreign or wanted.ledger):
        raise UsageError(
            "--session, --tree, --as and --ledger cannot be used with a FILE", hint="leave out FILE, or them"
        )


class RequestBreakdown(NamedTuple):
    """A request with its tokens by share.

    Attributes:
        name: The name of the request.
        shares: Where the tokens go.
        measure: The counter, the model and its window.
        messages: The messages that are sent, with the tokens of each.
        original: The same messages, user messages as passed to `ask`.
        directory: Where the agent works.
        session: The session, "" for none.
        expired_after: Minutes for which the provider cached the last call, if they are over; 0 if not, or if unknown.
        memories: The memories in the request.
    """

    name: str
    shares: RequestShares
    measure: ModelWindow
    messages: Sequence[tuple[Message, int]]
    original: Sequence[Message]
    directory: str
    session: str
    expired_after: int = 0
    memories: Sequence[SentMemory] = ()

    @property
    def is_all_text(self) -> bool:
        """True if all messages can be counted, not only estimated."""
        return contains_only_text(message for message, _ in self.messages)

    @property
    def fits(self) -> bool:
        """True if the request fits the model's window."""
        budget = self.shares.budget
        if budget is None:
            return self.shares.total <= self.measure.window
        return budget.remaining >= 0 and budget.remaining_bytes >= 0


def show_request_tokens(ctx: typer.Context, wanted: ContextArguments) -> None:
    """Print where the tokens of a request go."""
    cli: CliContext = ctx.obj
    with open_session_nexus(ctx, wanted.session, wanted.ledger) as nexus:
        if wanted.session:
            wanted = wanted._replace(session=find_session(nexus.ledger, wanted.session).label)
        if wanted.profile == OWN_PROFILE:
            # A session sends what it has sent before, if a file cannot be read.
            loaded = cli.load_readable(nexus) if wanted.session else nexus.load()
            cli.review(loaded, require_trusted=wanted.require_trusted)
            found = _break_down_request(nexus, loaded.settings, wanted)
        else:
            found = _break_down_agent_prompt(nexus, cli, wanted)
    if wanted.json:
        cli.console.json(breakdown_to_json(found, tree=wanted.tree))
    else:
        _print_breakdown(cli, found, wanted)
    if not found.fits and not found.measure.is_assumed:
        raise typer.Exit(EXIT_FINDINGS)


def _break_down_request(nexus: Nexus, settings: Settings, wanted: ContextArguments) -> RequestBreakdown:
    request = nexus.request(model=wanted.model, session=wanted.session)
    context = nexus.assemble(request, must_fit=False)
    measure = open_model_window(nexus, settings, context.model)
    messages = list(zip(context.messages, _subtract_margin(context), strict=True))
    name = f"session {wanted.session}" if wanted.session else str(nexus.cwd)
    memories = _find_memories(nexus, wanted.session, context)
    original: Sequence[Message] = context.messages
    if wanted.session and wanted.top and not wanted.json:
        original = restore_user_inputs(context, nexus.session(wanted.session))
    return RequestBreakdown(
        name,
        split_request(context, memories),
        measure,
        messages,
        original,
        str(nexus.cwd),
        wanted.session,
        _find_expired_lifetime(nexus, wanted.session),
        memories,
    )


def _find_expired_lifetime(nexus: Nexus, session: str) -> int:
    """Return the minutes that the provider cached a session's last call, if they are over; 0 if not."""
    from nexus_core.cli.commands.diff_operand import find_newest_call
    from nexus_core.request.cache_report import MS_PER_MINUTE, find_expiry, get_cache_lifetime
    from nexus_core.request.runtime import get_time_ms

    record = nexus.ledger.session(session) if session else None
    last = None if record is None else find_newest_call(nexus.ledger, record.tip)
    if last is None or find_expiry(last, get_time_ms()) is None:
        return 0
    return get_cache_lifetime(last) // MS_PER_MINUTE


def _find_memories(nexus: Nexus, session: str, context: AssembledContext) -> Sequence[SentMemory]:
    """Return the memories in a session's request, with their tokens, sources and reasons."""
    record = nexus.ledger.session(session) if session else None
    if record is None:
        return ()
    from nexus_core.cli.memory_lookup import InjectedMemoryIndex
    from nexus_core.request.memories import list_injected_memories

    read_text = InjectedMemoryIndex(nexus.ledger).read_text
    return [*find_sent_memories(context, list_injected_memories(nexus.ledger, record), read_text)]


def restore_user_inputs(context: AssembledContext, session: Session) -> Sequence[Message]:
    """Return the messages of a call, with user messages as passed to `ask`, before rendering."""
    originals = {
        sent.content: original
        for sent, original in zip(session.messages, session.original_messages, strict=True)
        if sent.content != original.content
    }
    asked = [original for original in session.original_messages if original.role == "user"]
    return [_find_original_message(message, originals, asked[-1:]) for message in context.messages]


def _find_original_message(message: Message, originals: dict[str, Message], newest: Iterable[Message]) -> Message:
    if message.role != "user":
        return message
    known = originals.get(message.content)
    if known is not None:
        return known
    # A turn that was imported open is rendered only now.
    return next(
        (original for original in newest if original.content and message.content.endswith(original.content)), message
    )


def _subtract_margin(context: AssembledContext) -> list[int]:
    """Return the tokens of each message, of the current one without its safety margin."""
    tokens = list(context.message_tokens)
    if context.current_message is not None:
        tokens[len(context.history)] -= context.token_budget.margin
    return tokens


def _break_down_agent_prompt(nexus: Nexus, cli: CliContext, wanted: ContextArguments) -> RequestBreakdown:
    context = nexus.context(profile=wanted.profile, files=wanted.files)
    cli.review(context.loaded, require_trusted=wanted.require_trusted)
    cli.note_outside_files(context.agent_view)
    measure = open_model_window(nexus, cli.load_readable(nexus).settings, wanted.model)
    count = measure.counter.count
    total = count(context.system_prompt) if context.sections else 0
    shares = split_prompt(context, lambda section: count(render_section(section)), total)
    return RequestBreakdown(
        f"{context.cwd}, as {wanted.profile} reads it", shares, measure, [], [], str(context.cwd), ""
    )


def _print_breakdown(cli: CliContext, found: RequestBreakdown, wanted: ContextArguments) -> None:
    shares, total = found.shares, found.shares.total
    facts = [f"{format_count(len(shares.sections), 'section')} of the system prompt"]
    facts += [format_count(len(shares.tools), "tool")] if shares.tools else []
    facts += [format_count(len(found.messages), "message")] if found.messages else []
    cli.console.text(visible_line(f"{found.name}: {', '.join(facts)}"), wrap=True)
    cli.console.text(found.measure.describe(total, exact=found.is_all_text), wrap=True)
    if found.measure.model:
        cli.console.text(found.measure.describe_cost(total), wrap=True)
    if found.expired_after:
        cli.console.text(
            f"The provider's cache of the last call has expired, after {found.expired_after} min", wrap=True
        )
    if shares.budget is not None and (large := describe_bytes(shares.budget)):
        cli.console.text(large, wrap=True)
    if wanted.tree:
        _print_tree(cli, shares)
    else:
        _print_tables(cli, found, wanted.top)
    if shares.left_out:
        rows = [(each.what, "-" if each.tokens is None else f"{each.tokens:,}", each.rule) for each in shares.left_out]
        cli.console.text("")
        cli.console.table([("LEFT OUT", "TOKENS", "BY"), *rows], styles=["bold"])


def _print_tables(cli: CliContext, found: RequestBreakdown, top: int) -> None:
    console, shares, total = cli.console, found.shares, found.shares.total
    if shares.budget is not None:
        limit = shares.budget.limit
        print_token_bars(
            console,
            ("ZONE",),
            _build_token_rows(_divide_window(shares)),
            limit,
            share_of="OF WINDOW",
            sum_name="window",
        )
        print_token_bars(console, ("KIND",), _build_token_rows(shares.kinds()), total)
        print_token_bars(console, ("LAYER",), _build_token_rows(shares.layers()), total)
    here = f"{found.directory}/"  # a path is cut at its end, where it says most
    sections = [
        TokenRow(each.name, each.tokens, remark=format_source(each.uri.removeprefix(here))) for each in shares.sections
    ]
    if shares.framing:
        sections.append(TokenRow(FRAMING, shares.framing, remark="headings and separators"))
    print_token_bars(console, ("SECTION", "SOURCE"), sections, total, sum_name="system prompt")
    rows = [TokenRow(each.name, each.tokens, remark=format_source(each.uri)) for each in shares.tools]
    print_token_bars(console, ("TOOL", "SOURCE"), limit_rows(rows, top, "tool"), total, sum_name="all tools")
    rows = [
        TokenRow(f"message {place}", tokens, remark=f"{message.role}: {excerpt_message(message)}")
        for place, (message, (_, tokens)) in enumerate(zip(found.original, found.messages, strict=True))
    ]
    print_token_bars(console, ("LARGEST", "SAYS"), limit_rows(rows, top, "message"), total, sum_name="all messages")
    if found.memories:
        console.text("")
        listed = [
            (
                visible_line(each.memory.title),
                "-" if each.tokens is None else f"{each.tokens:,}",
                visible_line(each.memory.place.removeprefix(here)),
                visible_line(each.memory.reason) or "-",
            )
            for each in found.memories
        ]
        console.table([("MEMORY", "TOKENS", "SOURCE", "WHY"), *listed], styles=["bold"], right={1})


def _divide_window(shares: RequestShares) -> dict[str, int]:
    """Return the parts of the model's window in tokens. `free` is negative if it does not fit."""
    budget = shares.budget
    assert budget is not None  # noqa: S101 - asked before
    kept = {"for the answer": budget.reserve_response, "for tool results": budget.reserve_tools}
    return {**shares.zones(), "margin of the estimate": budget.correction, **kept, "free": budget.remaining}


def _print_tree(cli: CliContext, shares: RequestShares) -> None:
    rows = [("TOKENS", "SHARE", "WHAT", "SOURCE"), *format_share_tree(build_share_tree(shares))]
    cli.console.text("")
    cli.console.table(rows, styles=["bold"], right={0, 1})


def _build_token_rows(sums: Mapping[str, int]) -> list[TokenRow]:
    return [TokenRow(format_source(name), tokens) for name, tokens in sums.items() if tokens]


def breakdown_to_json(found: RequestBreakdown, *, tree: bool) -> dict[str, object]:
    """Return a request's tokens by share as JSON, with the tree of its pieces if asked for."""
    shares, budget = found.shares, found.shares.budget
    facts: dict[str, object] = {
        "schema": 1,
        "directory": found.directory,
        "session": found.session,
        **found.measure.to_json(shares.total, exact=found.is_all_text),
        "fits": found.fits,
        "input_cost": found.measure.estimate_cost(shares.total).to_json(),
        "cached_input_cost": found.measure.estimate_cost(shares.total, shares.total).to_json(),
        "cache_expired_after": found.expired_after or None,
        "zones": shares.zones(),
        "kinds": shares.kinds(),
        "layers": shares.layers(),
        "files": shares.files(),
        "sections": [_section_to_json(each) for each in shares.sections],
        "tools": [{"name": each.name, "tokens": each.tokens, "source": each.uri} for each in shares.tools],
        "framing": shares.framing,
        "messages": [{"role": message.role, "tokens": tokens} for message, tokens in found.messages],
        "left_out": [each._asdict() for each in shares.left_out],
        "reserved": 0 if budget is None else budget.reserve_response + budget.reserve_tools,
        "bytes": 0 if budget is None else budget.bytes,
        "byte_limit": 0 if budget is None else budget.byte_limit,
        "correction": 0 if budget is None else budget.correction,
        "free": found.measure.window - shares.total if budget is None else budget.remaining,
    }
    if found.memories:
        facts["memories"] = [{**each.memory.to_json(), "tokens": each.tokens} for each in found.memories]
    if tree:
        facts["tree"] = build_share_tree(shares).to_json()
    return facts


def _section_to_json(share: TokenShare) -> dict[str, object]:
    return {
        "id": share.id,
        "title": share.name,
        "kind": share.kind,
        "tokens": share.tokens,
        "source": {"uri": share.uri, "layer": share.layer, "plugin": share.plugin},
    }
