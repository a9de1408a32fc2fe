"""Where a session stands in its ledger, and how it gets on. Every method may take its time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import ExistsError
from nexus_core.session.assembling import Question, assemble, read_thread
from nexus_core.session.clamping import SOME_STEP, apply_clamps, find_clamps
from nexus_core.session.epochs import Epochs, read_tools
from nexus_core.session.numbering import turns_with
from nexus_core.session.spending import spent_until, spent_with
from nexus_core.session.tail import Tail
from nexus_core.session.turns import Turn
from nexus_core.session.walking import end_of_turn
from nexus_core.session.weighing import Scales, Weightless
from nexus_core.values.ledger import SessionRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.session.epochs import Epoch
    from nexus_core.session.inputs import Said
    from nexus_core.session.place import Place
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.conversation import Tool, Usage
    from nexus_core.values.ledger import Ledger, NewStep, Step
    from nexus_core.values.message import Message


class State(NamedTuple):
    """Where a session stands.

    Attributes:
        record: The session; None before anything was said.
        tip: Its newest step.
        turn: The turn of that step, open or not.
    """

    record: SessionRecord | None
    tip: Step | None
    turn: Turn | None

    @property
    def open_turn(self) -> Turn | None:
        """The turn that is open."""
        return self.turn if self.turn is not None and self.turn.is_open else None

    @property
    def epoch(self) -> str | None:
        """The epoch so far, by its digest."""
        digest = self.tip.data.get("epoch") if self.tip else None
        return digest if isinstance(digest, str) else None


class Thread:
    """The steps of one session.

    Args:
        place: Where it lives.
        label: Its name.
        model: Whom to ask; None for whom it asked before.
        tools: What the model may ask for, in the shape of any API; None for what was offered before.
    """

    def __init__(self, place: Place, label: str, *, model: str | None, tools: Iterable[object] | None) -> None:
        self.label = label
        self._place = place
        self._given_model = model
        self._given_tools = None if tools is None else list(tools)
        self._epochs = Epochs(place)
        self._known_tail: Tail | None = None
        self._known_scales: dict[str, Scales] = {}
        self._known_tools: dict[str, tuple[Tool, ...]] = {}

    # ---- reading --------------------------------------------------------------------------------------------

    def read(self) -> State:
        """Where it stands now."""
        record = self._ledger.session(self.label)
        if record is None or record.tip is None:
            return State(record, None, None)
        turn = Turn(self._tail.turn(record.tip))
        return State(record, turn.steps[-1], turn)

    def turn(self, step: Step) -> Turn:
        """The turn of a step, up to that step."""
        return Turn(self._tail.turn(step.id))

    def newest(self, state: State) -> Sequence[Step]:
        """The newest steps, some dozens of them."""
        return () if state.tip is None else self._tail.newest(state.tip.id, lambda _: True)

    def messages(self, tip: Step) -> tuple[Message, ...]:
        """What was said: the latest summary and what it keeps, or all."""
        return tuple(sent.message for sent in read_thread(self._tail, tip, Weightless()))

    def spent(self, tip: Step) -> Usage:
        """What it has cost, from its first turn on."""
        return spent_until(self._tail, tip)

    def model(self, state: State) -> str:
        """Whom to ask."""
        known = state.record.data.get("model") if state.record else None
        return self._given_model or str(known or self._place.settings.get("provider.model") or "")

    def tools(self, state: State) -> tuple[Tool, ...] | None:
        """What the caller offers; None for what was offered before.

        Raises:
            MessageError: Something in it is no definition of a tool.
        """
        if self._given_tools is None:
            return None
        api = self._place.model(self.model(state)).api
        if api not in self._known_tools:
            self._known_tools[api] = read_tools(self._given_tools, api)
        return self._known_tools[api]

    # ---- putting together -----------------------------------------------------------------------------------

    def epoch(self, state: State, *, keep: bool = True) -> Epoch:
        """System prompt and tools: those so far, or new ones, which are kept unless somebody only tries."""
        return self._epochs.current(state.epoch, self.tools(state), keep=keep)

    def assemble(self, state: State, epoch: Epoch, turn: str, said: Said | None) -> AssembledContext:
        """What goes into a call of the open turn, or of one that is only tried out with something said."""
        steps = () if state.open_turn is None else state.open_turn.steps
        event = said.event if said else steps[0].data.get("event") if steps else None
        event_id = event.get("event_id") if isinstance(event, dict) else None
        before = steps[0].parent if steps else state.tip.id if state.tip else None
        question = Question(
            label=self.label,
            model=self.model(state),
            epoch=epoch,
            tip=state.tip,
            turn=turn,
            said=said.message if said else None,
            parent_turn=None if before is None else self._tail.step(before).turn,
            event_id=event_id if isinstance(event_id, str) else None,
        )
        return assemble(question, self._place, self._tail, self._scales(state))

    # ---- adding ---------------------------------------------------------------------------------------------

    def append(self, step: NewStep, state: State) -> Step:
        """Add a step where the session stood, with what it takes and what goes on from the step before.

        Raises:
            ConflictError: It stands elsewhere by now.
        """
        record = self.create() if state.record is None or state.open_turn is None else state.record
        scales = self._scales(state)
        data = self._carried(state.tip, step) | dict(step.data)
        clamps = find_clamps(step.messages, self._place.result_tokens, scales.counter.count)
        if clamps:
            data["clamp"] = [list(clamp) for clamp in clamps]
        sizes = [scales.weigh(message) for message in apply_clamps(step.messages, clamps, SOME_STEP)]
        if len(sizes) > 1:
            data["sizes"] = sizes
        new = replace(step, tokens=sum(sizes), counter=scales.counter.name, data=data)
        added = self._ledger.append(record.label, new, after=None if state.tip is None else state.tip.id)
        self._tail.add(added)
        return added

    def create(self) -> SessionRecord:
        """The session, made if it is not there; it remembers the model."""
        record = self._ledger.session(self.label)
        if record is not None:
            if self._given_model and record.data.get("model") != self._given_model:
                return self._ledger.update(self.label, data={**record.data, "model": self._given_model})
            return record
        try:
            return self._ledger.create(self.label, data={"model": self._given_model or "", "cwd": str(self._place.cwd)})
        except ExistsError:  # somebody else was faster
            return self.create()

    def fork(self, label: str, at: str | None) -> Thread:
        """A session that begins where a closed turn of this one ended, by default the last."""
        record = self._ledger.session(self.label)
        head, data = (record.head, record.data) if record else (None, {})
        if at is not None:
            head = end_of_turn(self._ledger, record or SessionRecord(label=self.label), at).id
        self._ledger.create(label, head=head, origin=self.label, data=data)
        return Thread(self._place, label, model=self._given_model, tools=self._given_tools)

    # ---- what it goes by ------------------------------------------------------------------------------------

    @property
    def _ledger(self) -> Ledger:
        return self._place.ledger

    @property
    def _tail(self) -> Tail:
        if self._known_tail is None:
            self._known_tail = Tail(self._ledger)
        return self._known_tail

    def _carried(self, tip: Step | None, step: NewStep) -> dict[str, Any]:
        """What goes on from one step to the next: the epoch, the number of turns, the sum of what was spent."""
        epoch = {"epoch": tip.data["epoch"]} if tip is not None and "epoch" in tip.data else {}
        return epoch | turns_with(tip, step) | spent_with(tip, step)

    def _scales(self, state: State) -> Scales:
        model = self.model(state)
        if model not in self._known_scales:
            self._known_scales[model] = Scales(self._place.counter(model))
        return self._known_scales[model]
