"""How a session gets on in its ledger. Every method may take its time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.assembly.call import assemble
from nexus_core.errors import NexusError, SessionExistsError
from nexus_core.session.asking.occasion import PROFILE
from nexus_core.session.caching import cache_of
from nexus_core.session.options import mode_in
from nexus_core.session.place import RESULT_TOKENS, number
from nexus_core.session.recording.new_steps import build_session_start_step
from nexus_core.session.replaying import find_step, replay, sent_before
from nexus_core.session.spawning import hire, worker_options
from nexus_core.session.steps.clamping import SOME_STEP, apply_clamps, find_clamps
from nexus_core.session.steps.epochs import MissingBlobError
from nexus_core.session.steps.naming import end_of_turn
from nexus_core.session.steps.numbering import tokens_with, turns_with
from nexus_core.session.steps.reading import Bounds, read_thread
from nexus_core.session.steps.spending import spent_until, spent_with
from nexus_core.session.steps.state import State, carried
from nexus_core.session.steps.tail import Tail
from nexus_core.session.steps.turns import Turn
from nexus_core.session.steps.weighing import Weightless
from nexus_core.session.thread.reader import ThreadReader
from nexus_core.types.assembled import CacheReport
from nexus_core.types.ledger import SessionRecord
from nexus_core.types.request import DEFAULT_MODE, get_subagent_mode
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.assembly.call import Call
    from nexus_core.session.asking.planning import Seal
    from nexus_core.session.spawning import Orders
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.ledger import NewStep, Step
    from nexus_core.types.messages import Message, Usage

PUT_TOGETHER = ("input", "sealed")
"""The steps that depend on files: a session works in the directory in which these were made last."""
INHERITED = ("renderer", "permissions")
"""What a worker has from the session that made it, besides its model and the mode `server`."""


class SessionThread(ThreadReader):
    """The steps of one session, to which others are added; arguments as for `ThreadReader`."""

    # ---- reading --------------------------------------------------------------------------------------------

    def turn(self, step: Step) -> Turn:
        """The turn of a step, up to that step."""
        return Turn(self.tail.turn(step.id))

    def newest(self, state: State) -> Sequence[Step]:
        """The newest steps, some dozens of them."""
        return () if state.tip is None else self.tail.newest(state.tip.id, lambda _: True)

    def messages(self, tip: Step, *, as_said: bool = False) -> tuple[Message, ...]:
        """What was said: the latest summary and what it keeps, or all.

        Args:
            tip: The newest step.
            as_said: Whether what was asked is given in its own words, and not as it was sent.
        """
        sent = read_thread(self.tail, tip, Weightless(), Bounds())
        return tuple((as_said and each.said) or each.message for each in sent)

    def spent(self, tip: Step) -> Usage:
        """What it has cost, from its first turn on."""
        return spent_until(self.tail, tip)

    # ---- what was sent --------------------------------------------------------------------------------------

    def replay(self, name: str) -> Call:
        """What was sent before a reply."""
        tip = sent_before(self._ledger, name)
        settings = self._settings_known(State(None, None, None))
        return replay(self.place, Tail(self._ledger), tip, settings, self.label)

    def sent_at(self, tip: Step) -> TokenBudget | None:
        """What was taken by what was sent when a step was the newest, as we count; None where nobody can know."""
        try:
            settings = self._settings_known(State(None, None, None))
            return assemble(replay(self.place, self.tail, tip, settings, self.label)).token_budget
        except NexusError:  # a reply must be kept, whatever became of what was sent
            return None

    def cache_of(self, step: Step) -> CacheReport:
        """What became of the provider's cache in the call that a reply answers."""
        try:
            return cache_of(self.place, self.tail, step, self._settings_known(State(None, None, None)))
        except NexusError:
            return CacheReport()

    def cache(self, name: str) -> CacheReport:
        """The same by the name of the step.

        Raises:
            UsageError: There is no such step.
        """
        return self.cache_of(find_step(self._ledger, name))

    # ---- adding ---------------------------------------------------------------------------------------------

    def append(self, step: NewStep, state: State) -> Step:
        """Add a step where the session stood, with what it takes and what goes on from the step before.

        Raises:
            ConflictError: It stands elsewhere by now.
        """
        said, record = self._remembered(step), state.record
        if record is None or self._news(record, said):
            record = self._create(said)
        new: list[NewStep] = []
        if step.kind == "input" and self._starts(state, self._settings_known(state)):
            new.append(self._following(None, build_session_start_step(self.place.now()), state))
        new.append(self._following(new[-1] if new else state.tip, step, state))
        after = None if state.tip is None else state.tip.id
        ledger, label = self._ledger, record.label
        added = ledger.append_many(label, new, after=after) if new[1:] else [ledger.append(label, new[0], after=after)]
        for each in added:
            self.tail.add(each)
        self._seen = State(record, added[-1], None)
        return added[-1]

    def seal(self, seal: Seal, state: State) -> Step:
        """Write down how something is sent."""
        self.place.epochs.store(seal.blobs)
        return self.append(seal.step, state)

    def _create(self, said: dict[str, Any]) -> SessionRecord:
        """Return the session, created if it is not there, after it has remembered what is said about it."""
        record = self._ledger.session(self.label)
        if record is not None:
            news = self._news(record, said)
            if "cwd" in news:
                self.left = self.left_by(record)
            return self._ledger.update(self.label, data={**record.data, **news}) if news else record
        data = {"model": "", "cwd": str(self.place.cwd), **said}
        try:
            return self._ledger.create(self.label, data=data)
        except SessionExistsError:  # somebody else was faster
            return self._create(said)

    def reload(self) -> None:
        """Have the next call begin with everything as it is then."""
        record = self._ledger.session(self.label)
        if record is not None:
            reloads = State(record, None, None).reloads + 1
            self._ledger.update(self.label, data={**record.data, "reloads": reloads})

    def fork(self, label: str, at: str | None) -> SessionThread:
        """A session that begins where a closed turn of this one ended, by default the last."""
        record = self._ledger.session(self.label)
        head, data = (record.head, record.data) if record else (None, {})
        if at is not None:
            head = end_of_turn(self._ledger, record or SessionRecord(label=self.label), at).id
        self._ledger.create(label, head=head, origin=self.label, data=_without_parent(data))
        return SessionThread(self.place, label, self.options)

    def spawn(self, orders: Orders) -> SessionThread:
        """A worker with a task, made if it is not there."""
        state = self.read()
        found = self._look(state)
        settings = found[-1][1].settings
        kept = {**state.kept, **self.options.said}
        made = {name: value for name, value in kept.items() if name in INHERITED}
        if (mode := get_subagent_mode(mode_in(kept))) != DEFAULT_MODE:
            made["mode"] = mode
        options = worker_options(orders, self._given_tools(state, settings), self.place.dialects)
        made["model"] = options.model or self.model(state, settings)
        record = hire(self.place, self.label, state, orders, made)
        return SessionThread(self.place, record.label, options)

    # ---- what it goes by ------------------------------------------------------------------------------------

    def _settings_known(self, state: State) -> Settings:
        """The settings as they were last seen: what was said must be kept, whatever became of a file meanwhile."""
        if self._settings is None:
            try:
                self._look(state)
            except NexusError:
                with suppress(MissingBlobError):
                    return self.place.epochs.setup(state.setup) if state.setup else Settings()
        return self._settings or Settings()

    def _remembered(self, step: NewStep) -> dict[str, Any]:
        """Return what the session remembers with a step: the caller's options, where it works, a profile."""
        said = self.options.said
        if step.kind in PUT_TOGETHER:
            said["cwd"] = str(self.place.cwd)
        event = step.data.get("event") if step.kind == "input" else None
        if isinstance(event, dict) and PROFILE in event:
            said[PROFILE] = event[PROFILE]
        return said

    def _news(self, record: SessionRecord, said: dict[str, Any]) -> dict[str, Any]:
        """Return what of that is not remembered yet."""
        # A worker stays where it was sent.
        news = {name: value for name, value in said.items() if name != "cwd" or "inherits" not in record.data}
        return {
            name: value
            for name, value in news.items()
            if record.data.get(name) != value and (name != PROFILE or value or record.data.get(PROFILE))
        }

    def _following(self, tip: Step | NewStep | None, step: NewStep, state: State) -> NewStep:
        """Return a step with its tokens and with everything that goes on from the step before it."""
        new = self._weighed(step, state)
        sums = turns_with(tip, step) | tokens_with(tip, new) | spent_with(tip, step)
        data = carried(tip) | sums | dict(new.data)
        return replace(new, data={name: value for name, value in data.items() if name != "cut" or value is not None})

    def _weighed(self, step: NewStep, state: State) -> NewStep:
        """A step with what its messages take; long results are cut once and for all."""
        settings = self._settings_known(state)
        scales = self.place.scales(self.model(state, settings), settings)
        limit = number(settings, "truncation.tool_result_tokens", RESULT_TOKENS)
        data: dict[str, Any] = dict(step.data)
        clamps = find_clamps(step.messages, limit, scales.counter.count)
        if clamps:
            data["clamp"] = [list(clamp) for clamp in clamps]
        # What was said counts in its seal, as it is sent.
        counted = () if step.kind == "input" and not step.closes else apply_clamps(step.messages, clamps, SOME_STEP)
        sizes = [scales.weigh(message) for message in counted]
        if len(sizes) > 1:
            data["sizes"] = sizes
        return replace(step, tokens=sum(sizes), counter=scales.counter.name, data=data)


def _without_parent(data: Any) -> dict[str, Any]:  # noqa: ANN401 - what a record holds
    """What a fork remembers: it answers no call of anybody."""
    return {name: value for name, value in data.items() if name not in ("parent", "call")}
