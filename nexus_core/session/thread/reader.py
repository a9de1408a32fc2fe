"""Where a session stands in its ledger, and what it would send. Every method may take its time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core.assembly.tools import read_tools
from nexus_core.compaction.options import compaction_options
from nexus_core.errors import ConfigError, FileError
from nexus_core.session.asking.inputs import inherit_user_profile
from nexus_core.session.asking.planning import CallPlanner
from nexus_core.session.asking.triggering import find_trigger
from nexus_core.session.options import mode_in
from nexus_core.session.steps.state import State
from nexus_core.types.request import Request
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.assembly.static_context import StaticContext
    from nexus_core.assembly.surroundings import Seen
    from nexus_core.errors import NexusError
    from nexus_core.session.asking.inputs import Said
    from nexus_core.session.asking.planning import Plan
    from nexus_core.session.options import Options
    from nexus_core.session.place import SessionRuntime
    from nexus_core.session.steps.tail import Tail
    from nexus_core.types.ledger import Ledger, SessionRecord
    from nexus_core.types.messages import Tool
    from nexus_core.types.plugins import Finding
    from nexus_core.types.request import AgentMode


class ThreadReader:
    """What can be known of a session without adding to it.

    Args:
        place: Where it lives.
        label: Its name; "" for a conversation that is not kept.
        options: What the caller says about it.

    Attributes:
        any_directory: Whether the caller expects that it was used in another directory before.
        left: The directory that it was taken away from; "" where it stayed, or somebody was told.
        lost_prompt: The address of a system prompt that is gone from the ledger; "" once the caller knows.
    """

    def __init__(self, place: SessionRuntime, label: str, options: Options) -> None:
        self.label = label
        self.place = place
        self.options = options
        self.any_directory = False
        self.left = ""
        self.lost_prompt = ""
        self._known_tools: dict[str, tuple[Tool, ...]] = {}
        self._settings: Settings | None = None
        self._seen = State(None, None, None)

    def read(self) -> State:
        """Where it stands now."""
        record = self._ledger.session(self.label) if self.label else None
        if record is None or record.tip is None:
            self._seen = State(record, None, None)
            return self._seen
        from nexus_core.session.steps.turns import Turn

        turn = Turn(self.tail.turn(record.tip))
        self._seen = State(record, turn.steps[-1], turn)
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

    def standing(self, state: State) -> StaticContext:
        """What stands around it now.

        Raises:
            UnknownNameError: Nobody offers its role or renderer.
            MessageError: Something among its tools is no definition of a tool.
        """
        return self._stand(state)[0]

    def model(self, state: State, settings: Settings) -> str:
        """Whom to ask."""
        return settings.model_id(str(self.options.model or state.kept.get("model") or ""))

    def plan(self, state: State, said: Said | None = None) -> Plan:
        """What goes into a call of the open turn, or of one that is only tried out with something said."""
        standing, findings = self._stand(state)
        said = None if said is None else inherit_user_profile(said, state.kept)
        tail = self.tail if state.tip is not None else None
        model = self.model(state, standing.settings)
        start = said is not None and self._starts(state, standing.settings)
        planner = CallPlanner(self.place, tail, state, standing, model, start=start)
        if tail is not None and state.tip is not None:
            options = compaction_options(standing.settings)
            planner.find_trigger = partial(find_trigger, options, tail, state.tip)
        plan = planner.plan(said)
        if state.epoch and self.place.epochs.find(state.epoch, state.view) is None:
            self.lost_prompt = state.epoch
        if self.lost_prompt:  # the call is planned again once the step with the new prompt is stored
            findings = (*findings, _prompt_gone(self.lost_prompt))
        if self.label and not model:
            findings = (*findings, _nobody_named())
        if moved := self.find_move(state.record):
            findings = (*findings, moved)
        if tail is not None and (changed := tail.changed()):
            findings = (*findings, _changed(changed))
        return plan._replace(call=plan.call._replace(findings=(*findings, *plan.call.findings)))

    def find_move(self, record: SessionRecord | None = None) -> Finding | None:
        """Return what to know about a session that was last used in another directory; None if that is expected."""
        if self.any_directory or not self.label:
            return None
        record = record or self._ledger.session(self.label)
        left = self.left or (self.left_by(record) if record else "")
        return _moved(self.label, left, self.place.cwd) if left else None

    def left_by(self, record: SessionRecord) -> str:
        """The directory in which something was last asked in it, if what is said here takes it elsewhere; else ""."""
        kept, here = record.data.get("cwd"), str(self.place.cwd)
        is_bound = record.tip is None or "inherits" in record.data  # nothing comes along, or it stays where it was sent
        return kept if isinstance(kept, str) and kept != here and not is_bound else ""

    @property
    def _ledger(self) -> Ledger:
        return self.place.ledger

    @property
    def tail(self) -> Tail:
        """What is known of its thread."""
        return self.place.tail(self.label)

    def _starts(self, state: State, settings: Settings) -> bool:
        """True if the next question begins the session: it then says first when it started. A fork has begun before."""
        is_fork = state.record is not None and bool(state.record.origin)
        is_new = bool(self.label) and state.tip is None and not is_fork
        return is_new and settings.get("context.session_start", True) is not False

    def _stand(self, state: State) -> tuple[StaticContext, tuple[Finding, ...]]:
        try:
            found = self._look(state)
        except (FileError, ConfigError) as error:
            return self._stand_still(state, error), (_unread(error),)
        return self.place.surroundings.stand(found, self._fields(state, found[-1][1].settings)), ()

    def _stand_still(self, state: State, error: NexusError) -> StaticContext:
        """What stood around it when files could last be read; a conversation goes on, whatever became of them.

        Raises:
            error: Nothing was sent yet, or everything shall be read again, or something else is wanted now than then.
        """
        epochs, surroundings = self.place.epochs, self.place.surroundings
        epoch = epochs.find(state.epoch, state.view)
        if epoch is None or epoch.basis.get("reloads", 0) != state.reloads:
            raise error
        found = surroundings.last_look(self._places(state), self._mode(state))
        if found is not None:
            self._settings = found[-1][1].settings
            return surroundings.stand(found, self._fields(state, self._settings))
        self._settings = epochs.setup(state.setup) if state.setup else Settings()
        request = Request(cwd=self._places(state)[-1], home=self.place.home, mode=self._mode(state))
        request = replace(request, **self._fields(state, self._settings)).standing
        from nexus_core.assembly.stored_static_context import StoredStaticContext, agrees

        if not agrees(epoch, request):
            raise error
        request = replace(request, renderer=str(epoch.basis.get("renderer")))
        told = epochs.view(state.view or epoch.view)
        return StoredStaticContext(request, self._settings, epoch, told, self.place.host)

    def _fields(self, state: State, settings: Settings) -> dict[str, Any]:
        """The circumstances that the caller decides."""
        fields = self.options.over(state.kept)
        fields.pop("model", None)
        fields["mode"] = self._mode(state)
        return fields | {"tools": self._given_tools(state, settings), "session": self.label}

    def _look(self, state: State) -> list[Seen]:
        found = self.place.surroundings.look(self._places(state), self._mode(state))
        self._settings = found[-1][1].settings
        return found

    def _mode(self, state: State) -> AgentMode:
        return mode_in(self.options.over(state.kept))

    def _places(self, state: State) -> list[Path]:
        inherited = state.kept.get("inherits")
        return [Path(each) for each in inherited] if isinstance(inherited, list) else [self.place.cwd]

    def _given_tools(self, state: State, settings: Settings) -> tuple[Tool, ...]:
        """What the caller offers, else what was offered before."""
        if self.options.tools is None:
            epoch = self.place.epochs.find(state.epoch, state.view)
            return (epoch.given or ()) if epoch else ()
        api = self.place.model(self.model(state, settings), settings).api
        if api not in self._known_tools:
            self._known_tools[api] = read_tools(self.options.tools, api, self.place.dialects)
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
