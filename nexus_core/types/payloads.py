"""Typed contents of steps and sessions, around the JSON that a ledger stores.

A payload reads its fields from JSON and keeps the JSON itself, so that whatever a newer version or another program has
stored survives: unknown keys, fields of an unexpected type, nulls, and the order of keys, which digests depend on. A
field that is missing or has another type reads as its default. What takes time is decoded when it is first used: a
thread has thousands of steps, and most callers need one or two fields of each.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, dataclass_transform

from nexus_core.types.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nexus_core.types.messages import JSON
    from nexus_core.types.prompt import TrustLevel

_LIST = (list, tuple)
"""JSON arrays; a program that gives steps to a ledger may use tuples."""


class ToolCallKey(NamedTuple):
    """Identifies a tool call by the step of its reply and its position there, since providers may repeat call ids."""

    step: str
    place: int


class DirectoryMove(NamedTuple):
    """The newest step of a session before it went on in another directory, and the directory it left.

    The directory is "" if it is not known.
    """

    step: str
    directory: str


class TextClamp(NamedTuple):
    """The cut in one text of a tool result.

    Attributes:
        message: Index of the message in its step.
        part: Index of the tool result in the message.
        text: Index of the text in the tool result.
        head: Characters kept of the beginning.
        tail: Characters kept of the end.
    """

    message: int
    part: int
    text: int
    head: int
    tail: int


class LearnedLimit(NamedTuple):
    """A limit that a provider reported in an error.

    Attributes:
        limit: The reported limit.
        assumed: The limit by settings and plugins at that time; the reported one holds until this changes.
    """

    limit: int
    assumed: int


CalibrationSamples = dict[str, list[float]]
"""By model, the provider's count divided by ours, for each of the newest calls."""
LearnedLimits = dict[str, LearnedLimit]
"""Learned limits, by model."""

# ---- fields ---------------------------------------------------------------------------------------------------------


class _PlainField(NamedTuple):
    """The declaration of a field that is stored as it is."""

    kind: type | tuple[type, ...]
    default: object
    key: str


class _DecodedField:
    """A field with a stored form of its own, which is decoded on first access; the value then hides this descriptor."""

    def __init__(self, decode: Callable[[Any], object], encode: Callable[[Any], object] | None, key: str) -> None:
        self.decode, self.encode, self.key = decode, encode, key
        self.name, self.default = key, decode(None)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.key = name, self.key or name

    def __get__(self, payload: Payload | None, owner: type) -> Any:  # noqa: ANN401 - the type that is declared
        if payload is None:
            return self
        fields = payload.__dict__
        fields[self.name] = value = self.decode(fields["_json"][self.key])
        return value


def _plain(kind: type | tuple[type, ...], default: object = None, *, key: str = "") -> Any:  # noqa: ANN401 - a default of any type
    """Declare a field that is stored as it is; with another type it reads as its default."""
    return _PlainField(kind, default, key)


def _decoded(decode: Callable[[Any], object], encode: Callable[[Any], object] | None = None, *, key: str = "") -> Any:  # noqa: ANN401 - a default of any type
    """Declare a field with a stored form of its own.

    `decode` gets what is stored, None for nothing, and accepts anything.
    """
    return _DecodedField(decode, encode, key)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Payload:
    """A frozen value around a JSON object.

    A new one is made of its fields; those that are given are stored, in the order in which they are given.

    Attributes:
        json_keys: The JSON key of each field, by the name of the field.
    """

    json_keys: ClassVar[Mapping[str, str]] = {}
    _kinds: ClassVar[Mapping[str, tuple[str, Any]]] = {}  # name and type by key; None for a field that is decoded
    _defaults: ClassVar[Mapping[str, object]] = {}  # of decoded fields, by name
    _encoders: ClassVar[Mapping[str, Callable[[Any], object]]] = {}  # by name
    _json: JSON

    def __init_subclass__(cls) -> None:
        keys, kinds = dict(cls.json_keys), dict(cls._kinds)
        defaults, encoders = dict(cls._defaults), dict(cls._encoders)
        for name, field in list(vars(cls).items()):
            if isinstance(field, _PlainField):
                keys[name] = key = field.key or name
                kinds[key] = name, field.kind
                setattr(cls, name, field.default)  # what is stored hides it
            elif isinstance(field, _DecodedField):
                keys[name] = field.key
                kinds[field.key], defaults[name] = (name, None), field.default
                if field.encode is not None:
                    encoders[name] = field.encode
        cls.json_keys, cls._kinds, cls._defaults, cls._encoders = keys, kinds, defaults, encoders

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401 - type checkers know the fields of each class
        self._read(self.encode(**fields))

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Return the payload with this JSON. Anything but an object is read as an empty one."""
        payload = cls.__new__(cls)
        payload._read(data if isinstance(data, dict) else {})  # noqa: SLF001 - its own
        return payload

    def _read(self, data: dict[str, Any]) -> None:
        """Set the plain fields; those that are decoded have their default, or wait for the first access."""
        fields, kinds = self.__dict__, self._kinds
        fields.update(self._defaults)
        fields["_json"] = data
        for key, value in data.items():
            if value is None or key not in kinds:
                continue
            name, kind = kinds[key]
            if kind is None:
                del fields[name]
            elif isinstance(value, kind):
                fields[name] = value

    def to_json(self) -> dict[str, Any]:
        """Return the JSON, with everything in it and in its order. Do not change it."""
        json: dict[str, Any] = self.__dict__["_json"]
        return json

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - fields
        """Return a copy with other fields; new ones come last."""
        return self.from_json(self.replace_json(**changes))

    def replace_json(self, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields
        """Return the JSON of a copy with other fields, without reading any of them."""
        return {**self.__dict__["_json"], **self.encode(**changes)}

    def merge(self, other: Payload) -> Self:
        """Return a copy with everything that another payload stores; new fields come last."""
        return self.from_json({**self.to_json(), **other.to_json()})

    def only(self, *names: str) -> Self:
        """Return a copy that stores these fields only."""
        keys = {self.json_keys[name] for name in names}
        return self.from_json({key: value for key, value in self.to_json().items() if key in keys})

    def without(self, *names: str) -> Self:
        """Return a copy that does not store these fields."""
        keys = {self.json_keys[name] for name in names}
        return self.from_json({key: value for key, value in self.to_json().items() if key not in keys})

    def subtract(self, other: Payload) -> Self:
        """Return a copy with the fields that the other payload does not store, or stores with another value."""
        known = other.to_json()
        return self.from_json({key: value for key, value in self.to_json().items() if known.get(key) != value})

    @classmethod
    def encode(cls, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields
        """Return the JSON of a payload with these fields, for callers that need no payload."""
        encoded = {}
        keys, encoders = cls.json_keys, cls._encoders
        for name, value in fields.items():
            if name not in keys:
                raise TypeError(f"{cls.__name__} has no field {name!r}")
            encoded[keys[name]] = encoders[name](value) if name in encoders and value is not None else value
        return encoded

    def __bool__(self) -> bool:
        return bool(self.to_json())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__["_json"] == other.__dict__["_json"]

    __hash__ = None  # type: ignore[assignment] # JSON objects have none either

    def __repr__(self) -> str:
        return f"{type(self).__name__}.from_json({self.to_json()!r})"

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


# ---- stored forms ---------------------------------------------------------------------------------------------------

_USAGE_FIELDS = dict.fromkeys(
    (
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "cache_write_1h_tokens",
    )
)


def _read_usage(value: object) -> Usage | None:
    """Return a stored usage; None if nothing is stored, or a number in it is of another type."""
    if not isinstance(value, dict):
        return None
    if not value.keys() <= _USAGE_FIELDS.keys():  # a newer version counts more
        value = {name: number for name, number in value.items() if name in _USAGE_FIELDS}
    for number in value.values():
        if type(number) is not int:
            return None
    return Usage(**value)


def _write_usage(usage: Usage) -> dict[str, int]:
    stored: dict[str, int] = {name: getattr(usage, name) for name in _USAGE_FIELDS}
    if not usage.cache_write_1h_tokens:  # as before there were lifetimes, so that digests of such replies stay
        del stored["cache_write_1h_tokens"]
    return stored


def _read_rows(value: object, *kinds: type) -> list[Any]:
    """Return the rows of an array whose columns have these types; none if one has another form."""
    rows = value if isinstance(value, _LIST) else ()
    for row in rows:
        if not isinstance(row, _LIST) or len(row) != len(kinds):
            return []
        if not all(map(isinstance, row, kinds)):
            return []
    return list(rows)


def _write_rows(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(row) for row in rows]


def _read_texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, _LIST) else ()


def _read_optional_texts(value: object) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, _LIST) else None


def _read_sizes(value: object) -> tuple[int, ...]:
    is_valid = isinstance(value, _LIST) and all(isinstance(size, int) for size in value)
    return tuple(value) if is_valid else ()  # type: ignore[arg-type] # it is a list


def _read_clamps(value: object) -> tuple[TextClamp, ...]:
    return tuple(TextClamp(*row) for row in _read_rows(value, int, int, int, int, int))


def _read_answers(value: object) -> tuple[ToolCallKey, ...]:
    return tuple(ToolCallKey(*row) for row in _read_rows(value, str, int))


def _read_savings(value: object) -> tuple[tuple[int, int], ...]:
    return tuple((before, after) for before, after in _read_rows(value, int, int))


def _read_samples(value: object) -> CalibrationSamples:
    rows = value.items() if isinstance(value, dict) else ()
    return {
        name: list(ratios)
        for name, ratios in rows
        if isinstance(ratios, _LIST) and all(isinstance(ratio, int | float) for ratio in ratios)
    }


def _read_limits(value: object) -> LearnedLimits:
    rows = value.items() if isinstance(value, dict) else ()
    return {name: LearnedLimit(*row) for name, row in rows if _read_rows([row], int, int)}


def _write_limits(limits: LearnedLimits) -> dict[str, list[int]]:
    return {name: list(row) for name, row in limits.items()}


def _read_trust(value: object) -> TrustLevel:
    return "user" if value == "user" else "project" if value == "project" else "foreign"


def _read_call_key(value: object) -> ToolCallKey | None:
    return ToolCallKey(*value) if isinstance(value, _LIST) and _read_rows([value], str, int) else None


# ---- steps ----------------------------------------------------------------------------------------------------------


class StepPayload(Payload):
    """Fields that steps of every kind may have.

    The first eleven describe the state of the session. Each step carries them on to the next one (`follow`), so that
    the newest step alone holds all of it.

    Attributes:
        epoch: The digest of the frozen prefix: system prompt and tools; "" before the first call.
        sections_digest: The digest of the sections that the model has read last.
        settings_digest: The digest of the settings of the last call.
        cut: The truncation point of the last call, as `TruncationPoint.to_json` writes it; None if all was sent.
        calibration: The provider's token counts divided by ours, for the newest calls of each model.
        windows: Context windows that providers reported in errors, by model.
        request_bytes: Largest request bodies that providers accept, in bytes, by model.
        pins: The ids of the steps that compactions must keep.
        memories: The digest of the memories before the history, which were recalled with a position of their own.
        memory_role: The role of the message with these memories, `system` or `user`.
        unsent_memories: Memories in user messages that are not sent any more, each as `<turn>/<id of the memory>`.
        turns: Turns of the thread up to this step; None if they were not counted.
        total_tokens: Tokens of the thread up to this step, whichever counters counted them; None as above.
        total_messages: Messages of an imported thread up to this step; None as above.
        total_usage: What all calls of the thread used up to this step; None as above.
        model: The model that is called, or that has replied; None if it is not stored.
        context: For each message, the metadata that it was rendered with; None for none.
        sizes: The tokens of each message, if there are several.
        clamps: The cuts in long tool results.
        imported: For each message, the lines of the transcript that it was read from; None if it is not imported.
        time: The time in the transcript, as it is written there.
        kinds: The kind of each imported message, if a program wrote one in the user's name.
    """

    epoch: str = _plain(str, "")
    sections_digest: str = _plain(str, "", key="view")
    settings_digest: str = _plain(str, "", key="setup")
    cut: JSON | None = _plain(dict)
    calibration: CalibrationSamples = _decoded(_read_samples)
    windows: LearnedLimits = _decoded(_read_limits, _write_limits)
    request_bytes: LearnedLimits = _decoded(_read_limits, _write_limits)
    pins: tuple[str, ...] = _decoded(_read_texts, list)
    memories: str = _plain(str, "")
    memory_role: str = _plain(str, "")
    unsent_memories: tuple[str, ...] = _decoded(_read_texts, list)
    turns: int | None = _plain(int)
    total_tokens: int | None = _plain(int, key="all_tokens")
    total_messages: int | None = _plain(int, key="messages")
    total_usage: Usage | None = _decoded(_read_usage, _write_usage, key="spent")
    model: str | None = _plain(str)
    context: Sequence[JSON | None] = _plain(_LIST, ())
    sizes: tuple[int, ...] = _decoded(_read_sizes, list)
    clamps: tuple[TextClamp, ...] = _decoded(_read_clamps, _write_rows, key="clamp")
    imported: Sequence[Sequence[int]] | None = _plain(_LIST)
    time: str = _plain(str, "")
    kinds: Sequence[str] = _plain(_LIST, ())

    def follow(
        self, before: StepPayload | None, *, turns: int | None, total_tokens: int | None, total_usage: Usage | None
    ) -> Self:
        """Return the payload of a step after another: with the state that it carries on, and running totals.

        Args:
            before: The step before; None for the first of a session.
            turns: The turns up to this step; None if those up to the step before are not known.
            total_tokens: The tokens up to this step; None as above.
            total_usage: The usage up to this step; None as above.
        """
        known = {} if before is None else before.to_json()
        stored = {key: known[key] for key in _CARRIED_KEYS if known.get(key) is not None}
        totals = {"turns": turns, "all_tokens": total_tokens}
        stored |= {key: value for key, value in totals.items() if value is not None}
        if total_usage is not None:
            stored["spent"] = _write_usage(total_usage)
        stored |= self.to_json()
        if stored.get("cut", self) is None:  # it ends the truncation of the step before
            del stored["cut"]
        return self.from_json(stored)


_CARRIED_KEYS = (
    "epoch",
    "view",
    "setup",
    "cut",
    "calibration",
    "windows",
    "request_bytes",
    "pins",
    "memories",
    "memory_role",
    "unsent_memories",
)


class InputPayload(StepPayload):
    """Fields of a user message, as it was given.

    Attributes:
        event: What the caller gave with the message: platform, attachments, profile, and so on.
    """

    event: JSON | None = _plain(dict)


class RenderedPayload(StepPayload):
    """Fields of a rendered input (kind `sealed`), and of what a call was made with.

    Attributes:
        session: The name of the session when it was sent.
        renderer: The name of the renderer; "" if the step has no message.
        section_entries: The sections in the message, as `SectionEntry.to_json` writes them.
    """

    session: str = _plain(str, "")
    renderer: str = _plain(str, "")
    section_entries: Sequence[JSON] = _plain(_LIST, (), key="told")


class ReplyPayload(StepPayload):
    """Fields of a model's reply.

    Attributes:
        id: The provider's id of the reply; "" if it has none.
        digest: The digest of the reply with its usage, by which a repeated one is recognized.
        stop: Why the model stopped, in the neutral format.
        stop_reason: The same in the provider's words.
        api: The API that it was read from.
        usage: The provider's token counts; None if it gave none.
        interrupted: True if the reply is partial, and its tool calls were not run.
        error: What went wrong in the run of an agent; "" for nothing.
        tool_calls: The tool calls that an agent reported beside its messages.
        asked: The newest step when the call was sent, if it is not the parent; None if it is.
        sent: Our count of the call's tokens; None if it is not known.
        continues: True if it continues the turn before, of which another program stored the parts.
    """

    id: str = _plain(str, "")
    digest: str = _plain(str, "")
    stop: str = _plain(str, "")
    stop_reason: str = _plain(str, "")
    api: str = _plain(str, "")
    usage: Usage | None = _decoded(_read_usage, _write_usage)
    interrupted: bool = _plain(bool, default=False)
    error: str = _plain(str, "")
    tool_calls: Sequence[object] = _plain(_LIST, ())
    asked: str | None = _plain(str)
    sent: int | None = _plain(int)
    continues: bool = _plain(bool, default=False)


class ExternalTurnPayload(ReplyPayload):
    """Fields of a complete turn that another framework ran.

    Attributes:
        items: The items of the OpenAI Agents SDK; None if they are those that its messages give.
        state: What a framework keeps beside the messages, in the form of its adapter; None for nothing.
    """

    items: Sequence[dict[str, Any]] | None = _plain(_LIST)
    state: JSON | None = _plain(dict)


class StatePayload(StepPayload):
    """Fields of a step without messages, in which a framework keeps a state.

    Attributes:
        state: The state, in the form of its adapter; None if it cannot be read.
    """

    state: JSON | None = _plain(dict)


class ResultPayload(StepPayload):
    """Fields of tool results.

    Attributes:
        answers: The calls that are answered, in the order of the results.
    """

    answers: tuple[ToolCallKey, ...] = _decoded(_read_answers, _write_rows)


class InterruptedPayload(ResultPayload):
    """Fields of the end of an unfinished turn. Its `answers` are the calls that were pending."""


class CompactionPayload(StepPayload):
    """Fields of a compaction. The model, epoch and limit are those of the next call.

    Attributes:
        summary: The text that replaces the summarized messages, without its first line.
        marker: The first line; None for the default one.
        role: The role of the message; "" for the default one.
        prose: The part of the summary that a summarizer wrote.
        facts: The facts in the summarized messages, as `facts_to_json` writes them; None if another program made it.
        quotes: The user's words in them, as `quotes_to_json` writes them.
        fidelity: For each class of facts, how many are retained, recoverable and lost.
        first_kept: The id of the first step that is kept; None if no step before it is.
        pinned: The ids of the pinned steps, which are sent after the summary.
        covered: The ids of the first and the last summarized step; empty if none is.
        trigger: Why it was made, a `CompactionTrigger`.
        focus: What the caller asked the summary to keep.
        summarizer: The name of the summarizer.
        calls: Calls of the summarizer.
        failures: The name and error of each summarizer that failed before.
        redacted: Number of secrets removed before summarizing, by kind.
        form: The form of the request to the summarizer; None if no model was asked.
        note: Why the form differs from the one wanted; "" if it does not.
        planner: The name of the plugin that chose what to summarize.
        tokens_before, tokens_after: Tokens of the next call without and with it; None if they are not known.
        savings: The same of the latest compactions, newest last.
        trust: The lowest trust level of what it summarizes.
        limit: Tokens that the window of the model had available; None if it is not known.
        cleared: True if it removes all items of the OpenAI Agents SDK.
    """

    summary: str = _plain(str, "")
    marker: str | None = _plain(str)
    role: str = _plain(str, "")
    prose: str = _plain(str, "")
    facts: Sequence[object] | None = _plain(_LIST)
    quotes: Sequence[object] = _plain(_LIST, (), key="words")
    fidelity: JSON | None = _plain(dict)
    first_kept: str | None = _plain(str)
    pinned: tuple[str, ...] = _decoded(_read_texts, list)
    covered: tuple[str, ...] = _decoded(_read_texts, list)
    trigger: str = _plain(str, "")
    focus: str = _plain(str, "")
    summarizer: str = _plain(str, "", key="summariser")
    calls: int = _plain(int, 0)
    failures: Sequence[Sequence[str]] = _plain(_LIST, ())
    redacted: JSON | None = _plain(dict)
    form: str | None = _plain(str)
    note: str = _plain(str, "")
    planner: str = _plain(str, "")
    tokens_before: int | None = _plain(int)
    tokens_after: int | None = _plain(int)
    savings: tuple[tuple[int, int], ...] = _decoded(_read_savings, _write_rows, key="gains")
    trust: TrustLevel = _decoded(_read_trust)
    limit: int | None = _plain(int)
    cleared: bool = _plain(bool, default=False)

    @property
    def names_kept(self) -> bool:
        """False if `first_kept` is stored, and is not the id of a step."""
        return self.first_kept is not None or self.to_json().get("first_kept") is None


class RevertPayload(StepPayload):
    """Fields of a step that takes something back: a compaction, or the newest messages.

    Attributes:
        restores: The id of the compaction that applies again; None for none.
        reverts: The id of the compaction that is undone; "" if messages are taken back.
        popped: How many of the newest messages are taken back; None if a compaction is undone.
    """

    restores: str | None = _plain(str)
    reverts: str = _plain(str, "")
    popped: int | None = _plain(int)


class PinPayload(StepPayload):
    """Fields of a step that changes the `pins`."""


class ForgetPayload(StepPayload):
    """Fields of a step that changes the `memories` and the `unsent_memories`, and takes steps out of search indexes.

    Attributes:
        forgotten_steps: The ids of steps of the thread that no search finds any more.
    """

    forgotten_steps: tuple[str, ...] = _decoded(_read_texts, list)


_STEP_PAYLOADS: dict[str, type[StepPayload]] = {
    "input": InputPayload,
    "sealed": RenderedPayload,
    "reply": ReplyPayload,
    "result": ResultPayload,
    "interrupted": InterruptedPayload,
    "turn": ExternalTurnPayload,
    "compaction": CompactionPayload,
    "revert": RevertPayload,
    "pin": PinPayload,
    "forget": ForgetPayload,
    "state": StatePayload,
}


def read_step_payload(kind: str, data: object) -> StepPayload:
    """Return the payload of a step of some kind; that of an unknown kind has the common fields."""
    return _STEP_PAYLOADS.get(kind, StepPayload).from_json(data)


class StepPayloadMixin:
    """Mixin that decodes the metadata of a step on first access, once.

    Attributes:
        payload: The metadata with typed fields, of the class that belongs to the kind: `ReplyPayload`, and so on.
    """

    __slots__ = ("payload",)  # empty until the first access, for which Python then calls `__getattr__`

    payload: StepPayload

    def with_payload(self, payload: StepPayload, **changes: Any) -> Self:  # noqa: ANN401 - fields of the step
        """Return a copy with other metadata, and with other fields if they are given."""
        changed: Self = replace(self, data=payload.to_json(), **changes)  # type: ignore[type-var] # every step is a dataclass
        object.__setattr__(changed, "payload", payload)
        return changed

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> StepPayload:
            if name != "payload":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            payload = read_step_payload(self.kind, self.data)
            object.__setattr__(self, "payload", payload)
            return payload


# ---- sessions -------------------------------------------------------------------------------------------------------


class TranscriptPayload(Payload):
    """The transcript that a session was imported from.

    Attributes:
        format: The format of the file.
        id: The id of the conversation in its program; "" for none.
        agent: The subagent whose transcript it is; "" for none.
        session: The name that the import gave to the session.
        main: The session of the transcript's main path.
        kind: `main`, or the kind of the branch.
        number: Number of the transcript's sessions before this one.
        sessions: How many sessions the file became; None if another session says it.
        other_ids: Other ids of the same conversation.
        digest: The digest of the file; "" if another session has it.
        source: The digest of the stored file; "" if none is stored.
    """

    format: str = _plain(str, "")
    id: str = _plain(str, "")
    agent: str = _plain(str, "")
    session: str = _plain(str, "")
    main: str = _plain(str, "")
    kind: str = _plain(str, "")
    number: int = _plain(int, 0)
    sessions: int | None = _plain(int)
    other_ids: tuple[str, ...] = _decoded(_read_texts, list)
    digest: str = _plain(str, "")
    source: str = _plain(str, "")


def _read_transcript(value: object) -> TranscriptPayload | None:
    return TranscriptPayload.from_json(value) if isinstance(value, dict) else None


def _read_moves(value: object) -> tuple[DirectoryMove, ...]:
    rows = value if isinstance(value, list | tuple) else ()
    return tuple(
        DirectoryMove(str(row[0]), str(row[1]))
        for row in rows
        if isinstance(row, list | tuple) and len(row) == _MOVE_SIZE
    )


_MOVE_SIZE = len(DirectoryMove._fields)


def _read_skills(value: object) -> tuple[str, ...] | str | None:
    return value if isinstance(value, str) else _read_optional_texts(value)


def _write_skills(skills: Sequence[str]) -> str | list[str]:
    return skills if isinstance(skills, str) else list(skills)


class SessionPayload(Payload):
    """Metadata of a session. Options that are None were never given.

    Attributes:
        model: The model to call.
        fallback_model: The model before it, until the first reply of the new one; None once there is one.
        cwd: The working directory in which the session was last used.
        moves: The directories in which it was used before, the oldest first.
        role: The agent role.
        renderer: The renderer of prompts and user messages.
        permissions: Granted permissions; tools that need others are left out.
        system_prompt: The whole system prompt, in place of loaded instructions.
        task: The task of a worker.
        skills: The skills in the prompt, or `all`.
        mode: What drives the agent.
        profile: The user's profile that the last event gave; None for none.
        reloads: How often a caller requested a new prefix.
        inherits: The directories whose instructions a worker reads, its own last; None for other sessions.
        parent: The session that created a worker; None for other sessions.
        call: The tool call that a worker's final reply answers; None for none.
        sender: The sender of the message for which a worker was created, "" for none, also in its forks; None for other
            sessions, and for workers of older versions.
        transcript: The transcript that it was imported from; None if it was not.
        framework: The framework whose adapter created it and keeps its state there; "" for none.
    """

    model: str | None = _plain(str)
    fallback_model: str | None = _plain(str)
    cwd: str | None = _plain(str)
    moves: tuple[DirectoryMove, ...] = _decoded(_read_moves, _write_rows)
    role: str | None = _plain(str)
    renderer: str | None = _plain(str)
    permissions: tuple[str, ...] | None = _decoded(_read_optional_texts, list)
    system_prompt: str | None = _plain(str)
    task: str | None = _plain(str)
    skills: tuple[str, ...] | str | None = _decoded(_read_skills, _write_skills)
    mode: str | None = _plain(str)
    profile: JSON | None = _plain(dict)
    reloads: int = _plain(int, 0)
    inherits: tuple[str, ...] | None = _decoded(_read_optional_texts, list)
    parent: str | None = _plain(str)
    call: ToolCallKey | None = _decoded(_read_call_key, list)
    sender: str | None = _plain(str)
    transcript: TranscriptPayload | None = _decoded(_read_transcript, Payload.to_json)
    framework: str = _plain(str, "")

    @property
    def is_subagent(self) -> bool:
        """True for a worker, its forks and an imported subagent: an agent writes their user messages."""
        about = self.transcript
        is_imported = about is not None and (about.kind == "subagent" or bool(about.agent))
        return self.parent is not None or self.sender is not None or is_imported


class SessionPayloadMixin:
    """Decodes the metadata of a session on first access, and at most once.

    Attributes:
        payload: The metadata with typed fields.
    """

    __slots__ = ("payload",)  # as above

    payload: SessionPayload

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> SessionPayload:
            if name != "payload":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            payload = SessionPayload.from_json(self.data)
            object.__setattr__(self, "payload", payload)
            return payload
