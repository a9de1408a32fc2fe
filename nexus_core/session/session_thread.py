"""Where a session stands in its ledger, and what it would send. Every method may take its time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core.compaction.options import read_compaction_options
from nexus_core.compaction.trigger import find_trigger
from nexus_core.errors import ConfigError, FileError, NexusError, SessionExistsError
from nexus_core.request.build import build_request, plan_call
from nexus_core.request.cache_report import get_cache_report
from nexus_core.request.input import PROFILE_FIELD, inherit_user_profile
from nexus_core.request.prefix import MissingBlobError
from nexus_core.request.runtime import MAX_RESULT_TOKENS, get_number
from nexus_core.request.tools import read_tools
from nexus_core.session.options import get_mode
from nexus_core.session.record import build_session_start_step
from nexus_core.session.replay import find_reply_step, find_sent_step, replay_call
from nexus_core.session.workers import create_worker, read_worker_options
from nexus_core.thread.cache import ThreadCache
from nexus_core.thread.lookup import find_turn_end
from nexus_core.thread.projection import ReadLimits, read_thread
from nexus_core.thread.sizes import PLACEHOLDER_STEP_ID, NullSizer, apply_clamps, find_clamps
from nexus_core.thread.state import SessionState, get_carried_fields
from nexus_core.thread.totals import add_spent, add_tokens, add_turn, sum_usage
from nexus_core.thread.turns import Turn
from nexus_core.types.assembled import CacheReport
from nexus_core.types.ledger import SessionRecord
from nexus_core.types.request import DEFAULT_MODE, Request, get_subagent_mode
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.request.build import CallPlan, PendingRender
    from nexus_core.request.input import UserInput
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_cache import LoadedDirectory
    from nexus_core.request.static_context import StaticContext
    from nexus_core.session.options import SessionOptions
    from nexus_core.session.workers import SpawnArguments
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.ledger import Ledger, NewStep, Step
    from nexus_core.types.messages import Message, Tool, Usage
    from nexus_core.types.plugins import Finding
    from nexus_core.types.request import AgentMode


class ThreadReader:
    """What can be known of a session without adding to it.

    Args:
        runtime: Shared by all sessions of the Nexus.
        label: Its name; "" for a conversation that is not kept.
        options: What the caller says about it.

    Attributes:
        any_directory: Whether the caller expects that it was used in another directory before.
        left: The directory that it was taken away from; "" where it stayed, or somebody was told.
        lost_prompt: The address of a system prompt that is gone from the ledger; "" once the caller knows.
    """

    def __init__(self, runtime: SessionRuntime, label: str, options: SessionOptions) -> None:
        self.label = label
        self.runtime = runtime
        self.options = options
        self.any_directory = False
        self.left = ""
        self.lost_prompt = ""
        self._known_tools: dict[str, tuple[Tool, ...]] = {}
        self._settings: Settings | None = None
        self._seen = SessionState(None, None, None)

    def read(self) -> SessionState:
        """Where it stands now."""
        record = self._ledger.session(self.label) if self.label else None
        if record is None or record.tip is None:
            self._seen = SessionState(record, None, None)
            return self._seen

        turn = Turn(self.cache.read_turn(record.tip))
        self._seen = SessionState(record, turn.steps[-1], turn)
        return self._seen

    def describe(self) -> str:
        """Its name, and what is known of it so far: nothing is looked up, so that nobody has to wait."""
        from nexus_core.text.console import format_count

        model = self.model(self._seen, self._settings or Settings())
        turns = None if self._seen.tip is None else self._seen.tip.data.get("turns")
        told = [f"model={model!r}"] if model else []
        told += [format_count(turns, "turn")] if isinstance(turns, int) else []
        return ", ".join([repr(self.label), *told])

    def labels(self) -> list[str]:
        """The names of all sessions."""
        return [record.label for record in self._ledger.sessions(status=None)]

    def static_context(self, state: SessionState) -> StaticContext:
        """What stands around it now.

        Raises:
            UnknownNameError: Nobody offers its role or renderer.
            MessageError: Something among its tools is no definition of a tool.
        """
        return self._stand(state)[0]

    def model(self, state: SessionState, settings: Settings) -> str:
        """Whom to ask."""
        return settings.model_id(str(self.options.model or state.stored_options.get("model") or ""))

    def plan(self, state: SessionState, said: UserInput | None = None) -> CallPlan:
        """What goes into a call of the open turn, or of one that is only tried out with something said."""
        static, findings = self._stand(state)
        said = None if said is None else inherit_user_profile(said, state.stored_options)
        cache = self.cache if state.tip is not None else None
        model = self.model(state, static.settings)
        start = said is not None and self._starts(state, static.settings)
        due = None
        if cache is not None and state.tip is not None:
            due = partial(find_trigger, read_compaction_options(static.settings), cache, state.tip)
        plan = plan_call(
            self.runtime, cache, state, static, model, user_input=said, starts_session=start, find_trigger=due
        )
        if state.epoch and self.runtime.prefixes.find(state.epoch, state.sections_digest) is None:
            self.lost_prompt = state.epoch
        if self.lost_prompt:  # the call is planned again once the step with the new prompt is stored
            findings = (*findings, _prompt_gone(self.lost_prompt))
        if self.label and not model:
            findings = (*findings, _nobody_named())
        if moved := self.find_move(state.record):
            findings = (*findings, moved)
        if cache is not None and (changed := cache.list_changed_steps()):
            findings = (*findings, _changed(changed))
        return plan._replace(findings=(*findings, *plan.findings))

    def find_move(self, record: SessionRecord | None = None) -> Finding | None:
        """Return what to know about a session that was last used in another directory; None if that is expected."""
        if self.any_directory or not self.label:
            return None
        record = record or self._ledger.session(self.label)
        left = self.left or (self.left_by(record) if record else "")
        return _moved(self.label, left, self.runtime.cwd) if left else None

    def left_by(self, record: SessionRecord) -> str:
        """The directory in which something was last asked in it, if what is said here takes it elsewhere; else ""."""
        kept, here = record.data.get("cwd"), str(self.runtime.cwd)
        is_bound = record.tip is None or "inherits" in record.data  # nothing comes along, or it stays where it was sent
        return kept if isinstance(kept, str) and kept != here and not is_bound else ""

    @property
    def _ledger(self) -> Ledger:
        return self.runtime.ledger

    @property
    def cache(self) -> ThreadCache:
        """What is known of its thread."""
        return self.runtime.get_cache(self.label)

    def _starts(self, state: SessionState, settings: Settings) -> bool:
        """True if the next question begins the session: it then says first when it started. A fork has begun before."""
        is_fork = state.record is not None and bool(state.record.origin)
        is_new = bool(self.label) and state.tip is None and not is_fork
        return is_new and settings.get("context.session_start", True) is not False

    def _stand(self, state: SessionState) -> tuple[StaticContext, tuple[Finding, ...]]:
        try:
            found = self._look(state)
        except (FileError, ConfigError) as error:
            return self._stand_still(state, error), (_unread(error),)
        return self.runtime.static_contexts.get_static_context(found, self._fields(state, found[-1][1].settings)), ()

    def _stand_still(self, state: SessionState, error: NexusError) -> StaticContext:
        """What stood around it when files could last be read; a conversation goes on, whatever became of them.

        Raises:
            error: Nothing was sent yet, or everything shall be read again, or something else is wanted now than then.
        """
        prefixes, static_contexts = self.runtime.prefixes, self.runtime.static_contexts
        epoch = prefixes.find(state.epoch, state.sections_digest)
        if epoch is None or epoch.key.get("reloads", 0) != state.reloads:
            raise error
        found = static_contexts.get_last_load(self._places(state), self._mode(state))
        if found is not None:
            self._settings = found[-1][1].settings
            return static_contexts.get_static_context(found, self._fields(state, self._settings))
        self._settings = prefixes.read_settings(state.settings_digest) if state.settings_digest else Settings()
        request = Request(cwd=self._places(state)[-1], home=self.runtime.home, mode=self._mode(state))
        request = replace(request, **self._fields(state, self._settings)).standing
        from nexus_core.request.static_context import StoredStaticContext, prefix_matches

        if not prefix_matches(epoch, request):
            raise error
        request = replace(request, renderer=str(epoch.key.get("renderer")))
        told = prefixes.read_sections(state.sections_digest or epoch.sections_digest)
        return StoredStaticContext(request, self._settings, epoch, told, self.runtime.host)

    def _fields(self, state: SessionState, settings: Settings) -> dict[str, Any]:
        """The circumstances that the caller decides."""
        fields = self.options.over(state.stored_options)
        fields.pop("model", None)
        fields["mode"] = self._mode(state)
        return fields | {"tools": self._given_tools(state, settings), "session": self.label}

    def _look(self, state: SessionState) -> list[LoadedDirectory]:
        found = self.runtime.static_contexts.load(self._places(state), self._mode(state))
        self._settings = found[-1][1].settings
        return found

    def _mode(self, state: SessionState) -> AgentMode:
        return get_mode(self.options.over(state.stored_options))

    def _places(self, state: SessionState) -> list[Path]:
        inherited = state.stored_options.get("inherits")
        return [Path(each) for each in inherited] if isinstance(inherited, list) else [self.runtime.cwd]

    def _given_tools(self, state: SessionState, settings: Settings) -> tuple[Tool, ...]:
        """What the caller offers, else what was offered before."""
        if self.options.tools is None:
            epoch = self.runtime.prefixes.find(state.epoch, state.sections_digest)
            return (epoch.caller_tools or ()) if epoch else ()
        api = self.runtime.get_model(self.model(state, settings), settings).api
        if api not in self._known_tools:
            self._known_tools[api] = read_tools(self.options.tools, api, self.runtime.dialects)
        return self._known_tools[api]


def _nobody_named() -> Finding:
    from nexus_core.types.plugins import Finding

    return Finding("no-model", "No model is set: pass --model (in Python model=…), or set provider.model")


def _prompt_gone(digest: str) -> Finding:
    from nexus_core.types.plugins import Finding

    what = (
        f"The system prompt, tools or sections that this session sent so far are gone from the ledger (blob {digest})"
    )
    return Finding(
        "prompt-gone",
        f"{what}: it goes on with new ones, without tools that were passed before unless they are passed again",
    )


def _moved(label: str, left: str, here: Path) -> Finding:
    from nexus_core.text.safety import visible_line
    from nexus_core.types.plugins import Finding

    was = f"session {label!r} was last asked in {left}, and what was said there goes along to {here}"
    hint = "begin another under another name, or go on with it here: any_directory=True"
    return Finding("other-directory", visible_line(f"{was}; {hint}"))


def _changed(steps: Sequence[str]) -> Finding:
    from nexus_core.types.plugins import Finding

    what = f"{len(steps)} steps are" if len(steps) > 1 else f"step {steps[0]} is"
    return Finding("step-changed", f"{what} not what was recorded; `nexus ledger verify` says what was changed")


def _unread(error: NexusError) -> Finding:
    from nexus_core.types.plugins import Finding

    where = f" ({error.where})" if error.where else ""
    return Finding("unread-files", f"files are used as they were before, because {error.what}{where}")


FILE_DEPENDENT_KINDS = ("input", "sealed")
"""The steps that depend on files: a session works in the directory in which these were made last."""
INHERITED_OPTIONS = ("renderer", "permissions")
"""What a worker has from the session that made it, besides its model and the mode `server`."""


class SessionThread(ThreadReader):
    """The steps of one session, to which others are added; arguments as for `ThreadReader`."""

    # ---- reading --------------------------------------------------------------------------------------------

    def turn(self, step: Step) -> Turn:
        """The turn of a step, up to that step."""
        return Turn(self.cache.read_turn(step.id))

    def newest(self, state: SessionState) -> Sequence[Step]:
        """The newest steps, some dozens of them."""
        return () if state.tip is None else self.cache.read_newest(state.tip.id, lambda _: True)

    def messages(self, tip: Step, *, as_said: bool = False) -> tuple[Message, ...]:
        """What was said: the latest summary and what it keeps, or all.

        Args:
            tip: The newest step.
            as_said: Whether what was asked is given in its own words, and not as it was sent.
        """
        sent = read_thread(self.cache, tip, NullSizer(), ReadLimits())
        return tuple((as_said and each.original) or each.message for each in sent)

    def spent(self, tip: Step) -> Usage:
        """What it has cost, from its first turn on."""
        return sum_usage(self.cache, tip)

    # ---- what was sent --------------------------------------------------------------------------------------

    def replay(self, name: str) -> CallPlan:
        """What was sent before a reply."""
        tip = find_sent_step(self._ledger, name)
        settings = self._settings_known(SessionState(None, None, None))
        return replay_call(self.runtime, ThreadCache(self._ledger), tip, settings, self.label)

    def sent_at(self, tip: Step) -> TokenBudget | None:
        """What was taken by what was sent when a step was the newest, as we count; None where nobody can know."""
        try:
            settings = self._settings_known(SessionState(None, None, None))
            return build_request(replay_call(self.runtime, self.cache, tip, settings, self.label)).token_budget
        except NexusError:  # a reply must be kept, whatever became of what was sent
            return None

    def get_cache_report(self, step: Step) -> CacheReport:
        """What became of the provider's cache in the call that a reply answers."""
        try:
            return get_cache_report(
                self.runtime, self.cache, step, self._settings_known(SessionState(None, None, None))
            )
        except NexusError:
            return CacheReport()

    def find_cache_report(self, name: str) -> CacheReport:
        """The same by the name of the step.

        Raises:
            UsageError: There is no such step.
        """
        return self.get_cache_report(find_reply_step(self._ledger, name))

    # ---- adding ---------------------------------------------------------------------------------------------

    def append(self, step: NewStep, state: SessionState) -> Step:
        """Add a step where the session stood, with what it takes and what goes on from the step before.

        Raises:
            ConflictError: It stands elsewhere by now.
        """
        said, record = self._remembered(step), state.record
        if record is None or self._news(record, said):
            record = self._create(said)
        new: list[NewStep] = []
        if step.kind == "input" and self._starts(state, self._settings_known(state)):
            new.append(self._following(None, build_session_start_step(self.runtime.now()), state))
        new.append(self._following(new[-1] if new else state.tip, step, state))
        after = None if state.tip is None else state.tip.id
        ledger, label = self._ledger, record.label
        added = ledger.append_many(label, new, after=after) if new[1:] else [ledger.append(label, new[0], after=after)]
        for each in added:
            self.cache.add(each)
        self._seen = SessionState(record, added[-1], None)
        return added[-1]

    def seal(self, seal: PendingRender, state: SessionState) -> Step:
        """Write down how something is sent."""
        self.runtime.prefixes.store(seal.blobs)
        return self.append(seal.step, state)

    def _create(self, said: dict[str, Any]) -> SessionRecord:
        """Return the session, created if it is not there, after it has remembered what is said about it."""
        record = self._ledger.session(self.label)
        if record is not None:
            news = self._news(record, said)
            if "cwd" in news:
                self.left = self.left_by(record)
            return self._ledger.update(self.label, data={**record.data, **news}) if news else record
        data = {"model": "", "cwd": str(self.runtime.cwd), **said}
        try:
            return self._ledger.create(self.label, data=data)
        except SessionExistsError:  # somebody else was faster
            return self._create(said)

    def reload(self) -> None:
        """Have the next call begin with everything as it is then."""
        record = self._ledger.session(self.label)
        if record is not None:
            reloads = SessionState(record, None, None).reloads + 1
            self._ledger.update(self.label, data={**record.data, "reloads": reloads})

    def fork(self, label: str, at: str | None) -> SessionThread:
        """A session that begins where a closed turn of this one ended, by default the last."""
        record = self._ledger.session(self.label)
        head, data = (record.head, record.data) if record else (None, {})
        if at is not None:
            head = find_turn_end(self._ledger, record or SessionRecord(label=self.label), at).id
        self._ledger.create(label, head=head, origin=self.label, data=_without_parent(data))
        return SessionThread(self.runtime, label, self.options)

    def spawn(self, orders: SpawnArguments) -> SessionThread:
        """A worker with a task, made if it is not there."""
        state = self.read()
        found = self._look(state)
        settings = found[-1][1].settings
        kept = {**state.stored_options, **self.options.said}
        made = {name: value for name, value in kept.items() if name in INHERITED_OPTIONS}
        if (mode := get_subagent_mode(get_mode(kept))) != DEFAULT_MODE:
            made["mode"] = mode
        options = read_worker_options(orders, self._given_tools(state, settings), self.runtime.dialects)
        made["model"] = options.model or self.model(state, settings)
        record = create_worker(self.runtime, self.label, state, orders, made)
        return SessionThread(self.runtime, record.label, options)

    # ---- what it goes by ------------------------------------------------------------------------------------

    def _settings_known(self, state: SessionState) -> Settings:
        """The settings as they were last seen: what was said must be kept, whatever became of a file meanwhile."""
        if self._settings is None:
            try:
                self._look(state)
            except NexusError:
                with suppress(MissingBlobError):
                    return (
                        self.runtime.prefixes.read_settings(state.settings_digest)
                        if state.settings_digest
                        else Settings()
                    )
        return self._settings or Settings()

    def _remembered(self, step: NewStep) -> dict[str, Any]:
        """Return what the session remembers with a step: the caller's options, where it works, a profile."""
        said = self.options.said
        if step.kind in FILE_DEPENDENT_KINDS:
            said["cwd"] = str(self.runtime.cwd)
        event = step.data.get("event") if step.kind == "input" else None
        if isinstance(event, dict) and PROFILE_FIELD in event:
            said[PROFILE_FIELD] = event[PROFILE_FIELD]
        return said

    def _news(self, record: SessionRecord, said: dict[str, Any]) -> dict[str, Any]:
        """Return what of that is not remembered yet."""
        # A worker stays where it was sent.
        news = {name: value for name, value in said.items() if name != "cwd" or "inherits" not in record.data}
        return {
            name: value
            for name, value in news.items()
            if record.data.get(name) != value and (name != PROFILE_FIELD or value or record.data.get(PROFILE_FIELD))
        }

    def _following(self, tip: Step | NewStep | None, step: NewStep, state: SessionState) -> NewStep:
        """Return a step with its tokens and with everything that goes on from the step before it."""
        new = self._weighed(step, state)
        sums = add_turn(tip, step) | add_tokens(tip, new) | add_spent(tip, step)
        data = get_carried_fields(tip) | sums | dict(new.data)
        return replace(new, data={name: value for name, value in data.items() if name != "cut" or value is not None})

    def _weighed(self, step: NewStep, state: SessionState) -> NewStep:
        """A step with what its messages take; long results are cut once and for all."""
        settings = self._settings_known(state)
        sizer = self.runtime.get_sizer(self.model(state, settings), settings)
        limit = get_number(settings, "truncation.tool_result_tokens", MAX_RESULT_TOKENS)
        data: dict[str, Any] = dict(step.data)
        clamps = find_clamps(step.messages, limit, sizer.counter.count)
        if clamps:
            data["clamp"] = [list(clamp) for clamp in clamps]
        # What was said counts in its seal, as it is sent.
        counted = (
            () if step.kind == "input" and not step.closes else apply_clamps(step.messages, clamps, PLACEHOLDER_STEP_ID)
        )
        sizes = [sizer.count_tokens(message) for message in counted]
        if len(sizes) > 1:
            data["sizes"] = sizes
        return replace(step, tokens=sum(sizes), counter=sizer.counter.name, data=data)


def _without_parent(data: Any) -> dict[str, Any]:  # noqa: ANN401 - what a record holds
    """What a fork remembers: it answers no call of anybody."""
    return {name: value for name, value in data.items() if name not in ("parent", "call")}
