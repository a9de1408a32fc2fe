"""What becomes of what is given to be recorded: a step, or the one that is there already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.assembly.calibration import learn
from nexus_core.session.recording.new_steps import agent_step, read_agent_result, reply_step, result_step
from nexus_core.session.recording.replies import endless, read_reply
from nexus_core.session.recording.results import read_results
from nexus_core.session.steps.turns import read_usage
from nexus_core.session.thread.appending import RecordedBefore, ensure_not_archived
from nexus_core.types.assembled import AgentResult
from nexus_core.types.ledger import NewStep

if TYPE_CHECKING:
    from nexus_core.session.steps.state import State
    from nexus_core.session.thread.appending import Decide
    from nexus_core.session.thread.last_call import LastCall
    from nexus_core.session.thread.thread import SessionThread


class Deciding:
    """Decides about what is given, wherever the session stands then.

    Args:
        thread: The session.
        last: What was last sent.
    """

    def __init__(self, thread: SessionThread, last: LastCall) -> None:
        self._thread = thread
        self._last = last

    def about(self, given: object, *, interrupted: bool | None) -> Decide:
        """Read what is to be recorded, and say how it is decided about.

        Raises:
            MessageError: It is in no shape that is known, or a stream whose end is missing.
        """
        if isinstance(given, AgentResult):
            result = read_agent_result(given)
            return lambda state: self._agent(state, result)
        dialects = self._thread.place.dialects
        brought = read_results(given, dialects)
        if brought is not None:
            return lambda state: result_step(state.turn, brought)
        reply = read_reply(given, dialects)
        if reply.stop == "broken" and interrupted is None:
            raise endless()

        def decide(state: State) -> NewStep | RecordedBefore:
            decided = reply_step(state.turn, reply, interrupted=bool(interrupted))
            if isinstance(decided, RecordedBefore):
                return decided
            self._last.ensure_unmoved(state)
            return self._measured(decided, state)

        return decide

    def _measured(self, step: NewStep, state: State) -> NewStep:
        """A reply with what was sent to get it and to whom, and what its provider's count of that teaches."""
        if state.tip is None or state.turn is None:
            return step
        taken, sent_from = self._last.taken(state), self._last.sent_from(state)
        data: dict[str, Any] = dict(step.data)
        data["model"] = data["model"] or state.turn.sealed("model") or ""  # not every API says who has answered
        if sent_from is not None:
            data["asked"] = sent_from
        if taken is not None:
            data["sent"] = sent = taken.total
            usage = read_usage(step.data.get("usage"))
            if usage is not None:
                data["calibration"] = learn(state.ratios, str(state.turn.sealed("model")), sent, usage.input_tokens)
        return replace(step, data=data)

    def _agent(self, state: State, given: AgentResult) -> NewStep | RecordedBefore:
        newest = self._thread.newest(state) if given.id else ()
        decided = agent_step(state.turn, given, self._thread.place.dialects, newest)
        if isinstance(decided, NewStep) and decided.kind == "turn":
            ensure_not_archived(state)
        return decided
