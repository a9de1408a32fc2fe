"""A session's steps in its ledger: its state, the plan of its next call, and appending. All methods block."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

from nexus_core.compaction.trigger import find_trigger, read_compaction_options
from nexus_core.errors import ConfigError, ConflictError, FileError, LedgerError, NexusError, SessionExistsError
from nexus_core.ledger.senders import find_session_sender, read_sender
from nexus_core.request.build import build_request, plan_call
from nexus_core.request.cache_report import get_cache_report
from nexus_core.request.input import PROFILE_FIELD, inherit_user_profile
from nexus_core.request.prefix import MissingBlobError, StoredStaticContext, prefix_matches, read_tools
from nexus_core.request.runtime import MAX_RESULT_TOKENS
from nexus_core.session.options import get_mode
from nexus_core.session.record import build_session_start_step
from nexus_core.session.replay import find_reply_step, find_sent_step, replay_call
from nexus_core.session.workers import create_worker, read_worker_options
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.thread.cache import NullSizer, ThreadCache
from nexus_core.thread.calibration import CountedCall, learn_sample
from nexus_core.thread.lookup import find_step, find_turn_end
from nexus_core.thread.projection import ReadLimits, read_thread
from nexus_core.thread.state import (
    MAX_APPEND_ATTEMPTS,
    NO_STATE,
    DuplicateStep,
    SessionState,
    Turn,
    build_contention_error,
    continue_step,
    sum_usage,
)
from nexus_core.types.assembled import CacheReport
from nexus_core.types.ledger import SessionRecord
from nexus_core.types.payloads import DirectoryMove, InputPayload, SessionPayload
from nexus_core.types.plugins import Finding
from nexus_core.types.request import DEFAULT_MODE, Request, get_subagent_mode
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nexus_core.request.build import CallPlan, PendingRender
    from nexus_core.request.input import UserInput
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_context import LoadedDirectory, StaticContext
    from nexus_core.session.options import SessionOptions
    from nexus_core.session.workers import SpawnArguments
    from nexus_core.thread.state import Decide
    from nexus_core.types.budget import TokenBudget, TokenCalibration
    from nexus_core.types.ledger import Ledger, NewStep, Step
    from nexus_core.types.messages import Message, Tool, Usage
    from nexus_core.types.payloads import CalibrationSamples
    from nexus_core.types.request import AgentMode

FILE_DEPENDENT_KINDS = ("input", "sealed")
"""Kinds of steps that depend on files: a session belongs to the directory in which the last of these was made."""
REPLY_KINDS = ("reply", "turn")
"""Kinds of steps that settle the session's model. A call without a reply does not decide the model of the next turn."""
INHERITED_OPTIONS = ("renderer", "permissions")
"""Options that a worker inherits from its parent, besides its model and the mode `server`."""

MAX_MOVES = 50
"""Changes of the directory that a session stores; of the steps before them it is not known."""


class SessionThread:
    """The steps of one session.

    Args:
        runtime: Shared by all sessions of the Nexus.
        label: The session's name; "" for a conversation that is not stored.
        options: The options that the caller gave.

    Attributes:
        any_directory: Whether the session may have been used in another directory before.
    """

    def __init__(self, runtime: SessionRuntime, label: str, options: SessionOptions) -> None:
        self.label = label
        self.runtime = runtime
        self.options = options
        self.any_directory = False
        self._left_directory = ""  # the directory that the session moved from, until a call reports it
        self._missing_prefix = ""  # the digest of a prefix that is gone from the ledger, until a call reports it
        self._known_tools: dict[str, tuple[Tool, ...]] = {}
        self._settings: Settings | None = None
        self._seen = NO_STATE
        self._stored_options = options.stored
        self._find_cache: Callable[[], ThreadCache | None] = lambda: None

    def read(self) -> SessionState:
        """Return the session's state now."""
        self._find_cache = lambda: None  # so that the runtime knows the thread as used
        record = self._ledger.session(self.label) if self.label else None
        if record is None or record.tip is None:
            self._seen = SessionState(record, None, None)
            return self._seen

        turn = Turn(self.cache.read_turn(record.tip))
        self._seen = SessionState(record, turn.steps[-1], turn)
        return self._seen

    def describe(self) -> str:
        """Return the session's name and what is known of it, without reading the ledger."""
        model = self.model(self._seen, self._settings or Settings())
        turns = self._seen.newest.turns
        facts = [f"model={model!r}"] if model else []
        facts += [] if turns is None else [format_count(turns, "turn")]
        return ", ".join([repr(self.label), *facts])

    def list_names(self) -> list[str]:
        """Return the names of all sessions of the ledger."""
        return [record.label for record in self._ledger.sessions(status=None)]

    def static_context(self, state: SessionState) -> StaticContext:
        """Return role, renderer, tools and static sections as they are now.

        Raises:
            UnknownNameError: There is no such role or renderer.
            MessageError: One of its tools is not a tool definition.
        """
        return self._load_static(state)[0]

    def model(self, state: SessionState, settings: Settings) -> str:
        """Return the id of the model to call."""
        return settings.model_id(self.options.model or _find_settled_model(state, settings) or "")

    def plan(self, state: SessionState, user_input: UserInput | None = None) -> CallPlan:
        """Plan the next call of the open turn, or of a preview with a user message."""
        static, findings = self._load_static(state)
        if user_input is not None:
            user_input = inherit_user_profile(user_input, state.stored_options)
        cache = self.cache if state.tip is not None else None
        model = self.model(state, static.settings)
        start = user_input is not None and self._starts(state, static.settings)
        due = None
        if cache is not None and state.tip is not None:
            due = partial(find_trigger, read_compaction_options(static.settings), cache, state.tip)
        plan = plan_call(
            self.runtime, cache, state, static, model, user_input=user_input, starts_session=start, find_trigger=due
        )
        if state.newest.epoch and self.runtime.prefixes.find(state.newest.epoch, state.newest.sections_digest) is None:
            self._missing_prefix = state.newest.epoch
        if self._missing_prefix:  # also if another writer has stored a new prompt before this plan could be
            findings = (*findings, _build_prompt_gone_finding(self._missing_prefix))
        if self.label and not model:
            findings = (*findings, build_no_model_finding())
        if moved := self.find_move(state.record):
            findings = (*findings, moved)
        if cache is not None and (changed := cache.list_changed_steps()):
            findings = (*findings, _build_changed_finding(changed))
        return plan._replace(findings=(*findings, *plan.findings))

    def find_move(self, record: SessionRecord | None = None) -> Finding | None:
        """Return a finding if the session was last used in another directory, unless the caller expects it."""
        if self.any_directory or not self.label:
            return None
        record = record or self._ledger.session(self.label)
        left = self._left_directory or (self._find_left_directory(record) if record else "")
        return _build_move_finding(self.label, left, self.runtime.cwd) if left else None

    def _find_left_directory(self, record: SessionRecord) -> str:
        """Return the directory in which the session was last used, if this one is another; else ""."""
        kept, here = record.payload.cwd, str(self.runtime.cwd)
        is_bound = record.tip is None or record.payload.inherits is not None  # empty, or a worker, which does not move
        return kept if kept is not None and kept != here and not is_bound else ""

    @property
    def _ledger(self) -> Ledger:
        return self.runtime.open_ledger()

    @property
    def cache(self) -> ThreadCache:
        """The session's newest steps, in memory. The runtime alone decides how long."""
        cache = self._find_cache()
        if cache is None:
            cache = self.runtime.get_cache(self.label)
            self._find_cache = ref(cache)
        return cache

    @property
    def is_worker(self) -> bool:
        """True if another session created this one, as far as is known without reading the ledger."""
        return self._seen.stored_options.parent is not None

    def _starts(self, state: SessionState, settings: Settings) -> bool:
        """Return True if the next user message starts the session, which then says when; a fork has started before."""
        is_fork = state.record is not None and bool(state.record.origin)
        is_new = bool(self.label) and state.tip is None and not is_fork
        return is_new and settings.get("context.session_start", True) is not False

    def _load_static(self, state: SessionState) -> tuple[StaticContext, tuple[Finding, ...]]:
        try:
            found = self._load_directories(state, mode := self._mode(state))
        except (FileError, ConfigError) as error:
            return self._restore_static(state, error), (_build_unread_finding(error),)
        fields = self._fields(state, found[-1][1].settings, mode)
        reloads = state.stored_options.reloads
        return self.runtime.static_contexts.get_static_context(found, fields, reloads), ()

    def _restore_static(self, state: SessionState, error: NexusError) -> StaticContext:
        """Return the static context of the last call, so that a session continues although files cannot be read.

        Raises:
            error: Nothing was sent yet, a reload was asked for, or other options are given than then.
        """
        prefixes, static_contexts = self.runtime.prefixes, self.runtime.static_contexts
        prefix = prefixes.find(state.newest.epoch, state.newest.sections_digest)
        if prefix is None or prefix.key.get("reloads", 0) != state.stored_options.reloads:
            raise error
        mode = self._mode(state)
        found = static_contexts.get_last_load(self._list_directories(state), mode)
        if found is not None:
            self._settings = found[-1][1].settings
            fields = self._fields(state, self._settings, mode)
            return static_contexts.get_static_context(found, fields, state.stored_options.reloads)
        self._settings = (
            prefixes.read_settings(state.newest.settings_digest) if state.newest.settings_digest else Settings()
        )
        request = Request(cwd=self._list_directories(state)[-1], home=self.runtime.home, mode=mode)
        request = replace(request, **self._fields(state, self._settings, mode)).standing
        if not prefix_matches(prefix, request):
            raise error
        request = replace(request, renderer=str(prefix.key.get("renderer")))
        told = prefixes.read_sections(state.newest.sections_digest or prefix.sections_digest)
        return StoredStaticContext(request, self._settings, prefix, told, self.runtime.host)

    def _fields(self, state: SessionState, settings: Settings, mode: AgentMode) -> dict[str, Any]:
        """Return the fields of requests that the caller's options decide."""
        fields = self.options.over(state.stored_options)
        fields.pop("model", None)
        fields["mode"] = mode
        return fields | {"tools": self._given_tools(state, settings), "session": self.label}

    def _load_directories(self, state: SessionState, mode: AgentMode) -> list[LoadedDirectory]:
        found = self.runtime.static_contexts.load(self._list_directories(state), mode)
        self._settings = found[-1][1].settings
        return found

    def _mode(self, state: SessionState) -> AgentMode:
        return get_mode(state.stored_options.mode if self.options.mode is None else self.options.mode)

    def _list_directories(self, state: SessionState) -> list[Path]:
        inherited = state.stored_options.inherits
        return [self.runtime.cwd] if inherited is None else [Path(each) for each in inherited]

    def _given_tools(self, state: SessionState, settings: Settings) -> tuple[Tool, ...]:
        """Return the caller's tools, else those that were offered before."""
        if self.options.tools is None:
            prefix = self.runtime.prefixes.find(state.newest.epoch, state.newest.sections_digest)
            return (prefix.caller_tools or ()) if prefix else ()
        api = self.runtime.get_model(self.model(state, settings), settings).api
        if api not in self._known_tools:
            self._known_tools[api] = read_tools(self.options.tools, api, self.runtime.dialects)
        return self._known_tools[api]

    # ---- reading --------------------------------------------------------------------------------------------

    def turn(self, step: Step) -> Turn:
        """Return the turn of a step, up to that step."""
        return Turn(self.cache.read_turn(step.id))

    def list_newest(self, state: SessionState) -> Sequence[Step]:
        """Return some dozens of the newest steps."""
        return () if state.tip is None else self.cache.read_newest(state.tip.id, lambda _: True)

    def messages(self, tip: Step, *, original: bool = False) -> tuple[Message, ...]:
        """Return the latest summary and the messages that it keeps, or all messages.

        Args:
            tip: The newest step.
            original: Whether user messages are returned as they were given, not as they were sent.
        """
        items = read_thread(self.cache, tip, NullSizer(), ReadLimits())
        return tuple((original and each.original) or each.message for each in items)

    def sum_usage(self, tip: Step) -> Usage:
        """Return the tokens used since the first turn."""
        return sum_usage(self.cache, tip)

    # ---- calls of the past -----------------------------------------------------------------------------------

    def replay(self, name: str) -> CallPlan:
        """Return the call that a reply answered, by the id of its step."""
        tip = find_sent_step(self._ledger, name)
        settings = self._get_settings(NO_STATE)
        return replay_call(self.runtime, ThreadCache(self._ledger), tip, settings, self.label)

    def measure_call(self, tip: Step) -> TokenBudget | None:
        """Return the size of the call that was sent when a step was the newest; None if it cannot be known."""
        try:
            settings = self._get_settings(NO_STATE)
            return build_request(replay_call(self.runtime, self.cache, tip, settings, self.label)).token_budget
        except NexusError:  # a reply is stored even if its call cannot be rebuilt
            return None

    def learn_count(
        self, state: SessionState, model: str, call: CountedCall, calibration: TokenCalibration | None
    ) -> CalibrationSamples:
        """Return the samples of the session after a reply, which says how its provider counted a call.

        Args:
            state: The session before the reply.
            model: The model that was called.
            call: The call by both counts.
            calibration: The calibration with which the call was planned.
        """
        settings = self._get_settings(state)
        counter = self.runtime.get_sizer(model, settings).counter
        last = CountedCall(calibration.sent, calibration.counted) if calibration and calibration.counted else None
        return learn_sample(state.newest.calibration, model, counter, call, last)

    def get_cache_report(self, step: Step) -> CacheReport:
        """Return how much of the call that a reply answered came from the prompt cache."""
        try:
            return get_cache_report(self.runtime, self.cache, step, self._get_settings(NO_STATE))
        except NexusError:
            return CacheReport()

    def find_cache_report(self, name: str) -> CacheReport:
        """Return the same by the id of the step.

        Raises:
            UsageError: There is no such step.
        """
        return self.get_cache_report(find_reply_step(self._ledger, name))

    # ---- appending ------------------------------------------------------------------------------------------

    def append(self, step: NewStep, state: SessionState) -> Step:
        """Append a step, with its tokens and the fields that every step carries on from the one before.

        Raises:
            ConflictError: Another writer has appended since.
        """
        options, record = self._get_options(step, state), state.record
        if record is None:
            record = self._create(options, step)
        else:
            # A model without a reply must not become the former one of the next.
            is_settled = _find_settled_model(state, self._get_settings(state)) == state.stored_options.model
            if _merge_options(record.payload, options, step, is_settled=is_settled) != record.payload:
                record = self._update(options, step, is_settled=is_settled)
        new: list[NewStep] = []
        is_first = step.kind == "input" and self._starts(state, self._get_settings(state))
        steps = [build_session_start_step(self.runtime.now()), step] if is_first else [step]
        for counted in self._count(steps, state):
            new.append(continue_step(new[-1] if new else state.tip, counted))
        after = None if state.tip is None else state.tip.id
        ledger, label = self._ledger, record.label
        added = ledger.append_many(label, new, after=after) if new[1:] else [ledger.append(label, new[0], after=after)]
        for each in added:
            self.cache.add(each)
        self._seen = SessionState(record, added[-1], None)
        return added[-1]

    def append_decided(self, decide: Decide) -> Step | DuplicateStep | None:
        """Append the step that `decide` returns for the session's state.

        If another writer appends first, `decide` is called again with the new state. A `DuplicateStep` or None of
        `decide` is returned as it is.

        Raises:
            ConflictError: Other writers were faster `MAX_APPEND_ATTEMPTS` times in a row.
        """
        for _ in range(MAX_APPEND_ATTEMPTS):
            state = self.read()
            decided = decide(state)
            if decided is None or isinstance(decided, DuplicateStep):
                return decided
            with suppress(ConflictError):
                return self.append(decided, state)
        raise build_contention_error(self.label)

    def get_state_after(self, step: Step) -> SessionState:
        """Return the state after a step that was just appended here.

        The session is not read again: a step that depends on an outdated state cannot be appended.
        """
        return SessionState(self._seen.record, step, self.turn(step))

    def store_rendered(self, pending: PendingRender, state: SessionState) -> Step:
        """Store the rendered input of the open turn, and the blobs that it refers to."""
        self.runtime.prefixes.store(pending.blobs)
        return self.append(pending.step, state)

    def clear_announced_findings(self) -> None:
        """Forget what the last call has reported."""
        self._left_directory = self._missing_prefix = ""

    def _create(self, options: SessionPayload, step: NewStep) -> SessionRecord:
        """Create the session and return its record."""
        payload = SessionPayload(model="", cwd=str(self.runtime.cwd)).merge(options)
        try:
            return self._ledger.create(self.label, data=payload.to_json())
        except SessionExistsError:  # another writer was faster
            return self._update(options, step)

    def _update(self, options: SessionPayload, step: NewStep, *, is_settled: bool = True) -> SessionRecord:
        """Store new options with the session, for a step, and return its record."""
        record = self._ledger.session(self.label)
        if record is None:  # deleted meanwhile
            return self._create(options, step)
        merged = _merge_options(record.payload, options, step, is_settled=is_settled)
        if merged.cwd != record.payload.cwd:
            self._left_directory = self._find_left_directory(record)
            merged = merged.replace(moves=_list_moves(record))
        if merged == record.payload:
            return record
        return self._ledger.update(self.label, data=merged.to_json())

    def reload(self) -> None:
        """Begin a new prefix with the next call."""
        record = self._ledger.session(self.label)
        if record is not None:
            payload = record.payload.replace(reloads=record.payload.reloads + 1)
            self._ledger.update(self.label, data=payload.to_json())

    def fork(self, label: str, at: str | None) -> SessionThread:
        """Create a session that branches off after a closed turn, by default the last."""
        record = self._ledger.session(self.label)
        head, payload = (record.head, record.payload) if record else (None, SessionPayload())
        if at is not None:
            head = find_turn_end(self._ledger, record or SessionRecord(label=self.label), at).id
        if head is not None and payload.moves:
            payload = payload.replace(moves=self._list_moves_until(payload, head))
        if payload.parent is not None:  # a fork answers no tool call, and an agent wrote its messages
            sender = find_session_sender(self._ledger, self.label)
            payload = payload.replace(sender=sender).without("parent", "call")
        forgotten = [] if record is None or head is None else self._build_inherited_forget_steps(record, head)
        # One transaction: a fork that was created alone would send again what was forgotten since.
        self._ledger.create(label, head=head, origin=self.label, data=payload.to_json(), steps=forgotten)
        return SessionThread(self.runtime, label, self.options)

    def _list_moves_until(self, payload: SessionPayload, head: str) -> tuple[DirectoryMove, ...]:
        """Return the moves of the session up to a step, with that step for the first one after it."""
        tip = self._ledger.step(head)
        moves: list[DirectoryMove] = []
        for move in payload.moves:
            if tip is None or find_step(self._ledger, move.step, tip) is None:
                return (*moves, move._replace(step=head))
            moves.append(move)
        return tuple(moves)

    def _build_inherited_forget_steps(self, record: SessionRecord, head: str) -> list[NewStep]:
        """Return the step by which a fork forgets what the session has forgotten since a step, if it has.

        If that cannot be read, the fork leaves out every memory that it was given.
        """
        tip = self._ledger.step(head)
        if tip is None or record.tip is None or record.tip == head:
            return []
        from nexus_core.request.memories import build_forget_step, find_forgotten_since, list_injected_memories

        forked = replace(record, head=head, tip=head, open_turn=None)
        state = SessionState(forked, tip, Turn(ThreadCache(self._ledger).read_turn(head)))
        try:
            memories, steps = find_forgotten_since(self._ledger, self._ledger.thread(record.tip, first=head))
        except LedgerError as error:  # later steps are damaged, and a fork of what is before them is the way out
            what = "what session %r has forgotten cannot be read (%s), so its fork leaves out all memories"
            getLogger("nexus_core.session").warning(what, record.label, error.what)
            memories, steps = {each.id for each in list_injected_memories(self._ledger, forked)}, set()
        shared = [name for name in sorted(steps) if find_step(self._ledger, name, tip)]
        built = build_forget_step(self._ledger, state, memories, shared)
        if built is None:
            return []
        step, blob = built
        if blob:
            self._ledger.put_blob(blob)
        return [continue_step(tip, each) for each in self._count([step], state)]

    def spawn(self, orders: SpawnArguments) -> SessionThread:
        """Return a worker's session, created if it does not exist."""
        state = self.read()
        found = self._load_directories(state, self._mode(state))
        settings = found[-1][1].settings
        made = state.stored_options.merge(self._stored_options).only(*INHERITED_OPTIONS)
        if (mode := get_subagent_mode(self._mode(state))) != DEFAULT_MODE:
            made = made.replace(mode=mode)
        options = read_worker_options(orders, self._given_tools(state, settings), self.runtime.dialects)
        made = made.replace(model=options.model or self.model(state, settings))
        asked = "" if state.turn is None else read_sender(state.turn.steps[0])
        made = made.replace(sender=asked or find_session_sender(self._ledger, self.label))
        record = create_worker(self.runtime, self.label, state, orders, made)
        return SessionThread(self.runtime, record.label, options)

    # ---- fields of a step ---------------------------------------------------------------------------------

    def _get_settings(self, state: SessionState) -> Settings:
        """Return the settings, or the last known ones: a step must be stored even if a file cannot be read."""
        if self._settings is None:
            try:
                self._load_directories(state, self._mode(state))
            except NexusError:
                with suppress(MissingBlobError):
                    return (
                        self.runtime.prefixes.read_settings(state.newest.settings_digest)
                        if state.newest.settings_digest
                        else Settings()
                    )
        return self._settings or Settings()

    def _get_options(self, step: NewStep, state: SessionState) -> SessionPayload:
        """Return what the session's record stores with a step: options, directory, profile."""
        options = self._stored_options
        if step.kind == "input" and options.model is None and state.record is not None:
            settled = _find_settled_model(state, self._get_settings(state))
            options = options if settled is None else options.replace(model=settled)
        if step.kind in FILE_DEPENDENT_KINDS:
            options = options.replace(cwd=str(self.runtime.cwd))
        event = step.payload.event if isinstance(step.payload, InputPayload) else None
        if event is not None and PROFILE_FIELD in event:
            options = options.replace(profile=event[PROFILE_FIELD])
        return options

    def _count(self, steps: Iterable[NewStep], state: SessionState) -> list[NewStep]:
        """Return steps with the tokens of their messages; long tool results are truncated once and for all."""
        settings = self._get_settings(state)
        sizer = self.runtime.get_sizer(self.model(state, settings), settings)
        limit = settings.get_number("truncation.tool_result_tokens", MAX_RESULT_TOKENS)
        return [sizer.count_step(step, limit) for step in steps]


def _merge_options(
    stored: SessionPayload, options: SessionPayload, step: NewStep, *, is_settled: bool
) -> SessionPayload:
    """Return what a session's record stores once a step is appended with these options.

    Args:
        stored: What it stores now.
        options: The options.
        step: The step.
        is_settled: False if the stored model got no reply. Without a former model it is that of the first turn.
    """
    changes = options.subtract(stored)
    if not changes and is_settled and stored.fallback_model is None:
        return stored
    if stored.inherits is not None:  # a worker stays where it was sent
        changes = changes.without("cwd")
    if not (changes.profile or stored.profile):
        changes = changes.without("profile")
    merged = stored.merge(changes)
    settled = stored.model if is_settled else ""
    former = settled if stored.fallback_model is None else stored.fallback_model
    if step.kind in REPLY_KINDS or merged.model == former:
        return merged if stored.fallback_model is None else merged.without("fallback_model")
    return merged.replace(fallback_model=former or "")


def _list_moves(record: SessionRecord) -> tuple[DirectoryMove, ...]:
    """Return the moves of a session that goes on in another directory."""
    moves, left = record.payload.moves, record.payload.cwd
    if record.tip is not None and left:
        moves = (*moves, DirectoryMove(record.tip, left))
    if len(moves) > MAX_MOVES:
        moves = (DirectoryMove(moves[-MAX_MOVES].step, ""), *moves[1 - MAX_MOVES :])
    return moves


def _find_settled_model(state: SessionState, settings: Settings) -> str | None:
    """Return the session's model; after a closed turn that named another and got no reply, the one before it.

    A first turn without a reply decides nothing either, if the settings name a model. That of a worker is its parent's
    choice.
    """
    stored, turn = state.stored_options, state.turn
    if turn is None or turn.is_open:
        return stored.model
    if stored.fallback_model is not None:  # the replies of the turn, if any, are of this one
        return stored.fallback_model
    if turn.replies:
        return stored.model
    is_first = state.newest.turns == 1 and turn.steps[-1].kind == "interrupted" and stored.parent is None
    return "" if is_first and settings.model_id("") else stored.model


def build_no_model_finding() -> Finding:
    """Return the finding about a call without a model."""
    hint = "--model names one (in Python, model=…), or `nexus config set provider.model NAME`"
    return Finding("no-model", f"No model is set: {hint}")


def _build_prompt_gone_finding(digest: str) -> Finding:
    what = (
        f"The system prompt, tools or sections that this session sent so far are gone from the ledger (blob {digest})"
    )
    return Finding(
        "prompt-gone",
        f"{what}: it goes on with new ones, without tools that were passed before unless they are passed again",
    )


def _build_move_finding(label: str, left: str, here: Path) -> Finding:
    was = f"session {label!r} was last asked in {left}, and what was said there goes along to {here}"
    hint = "begin another under another name, or go on with it here: any_directory=True"
    return Finding("other-directory", visible_line(f"{was}; {hint}"))


def _build_changed_finding(steps: Sequence[str]) -> Finding:
    what = f"{len(steps)} steps are" if len(steps) > 1 else f"step {steps[0]} is"
    return Finding("step-changed", f"{what} not what was recorded; `nexus ledger verify` says what was changed")


def _build_unread_finding(error: NexusError) -> Finding:
    where = f" ({error.where})" if error.where else ""
    return Finding("unread-files", f"files are used as they were before, because {error.what}{where}")
