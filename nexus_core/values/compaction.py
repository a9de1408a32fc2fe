"""What takes the place of an earlier conversation, and who writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from nexus_core.values.checks import require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.message import Message

Trigger = Literal["context_limit", "overflow_recovery", "manual", "periodic"]
"""Why a conversation is compacted: it does not fit; a provider refused it; somebody asked; it was time."""

FactClass = Literal["path", "command", "identifier", "url", "number", "error"]
"""What kind of fact was found in a conversation."""

FACT_CLASSES: tuple[FactClass, ...] = get_args(FactClass)

LEAST_SUMMARY = 200
"""Tokens without which a summary says nothing."""

SummaryForm = Literal["standalone", "cached"]
"""How a model is asked: with the conversation as one text, or with the conversation itself and an instruction behind
it, so that the provider's cache is used."""


class ThreadMessage(NamedTuple):  # of which there are many
    """A message of a thread, as a model reads it.

    Attributes:
        message: What is said.
        step: The step that has it.
        turn: The turn of that step.
        position: Where the step stands in the thread.
        tokens: What the message takes.
        is_input: Whether the turn is about it.
    """

    message: Message
    step: str
    turn: str = ""
    position: int = 0
    tokens: int = 0
    is_input: bool = False


class ThreadGroup(NamedTuple):
    """Messages of a thread that live or die together; whole steps.

    Attributes:
        messages: In their order.
        pinned: Whether somebody wants them kept as they are.
    """

    messages: tuple[ThreadMessage, ...]
    pinned: bool = False

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps they stand in."""
        return tuple(dict.fromkeys(each.step for each in self.messages))

    @property
    def tokens(self) -> int:
        """What they take."""
        return sum(each.tokens for each in self.messages)


class ThreadTurn(NamedTuple):
    """A turn of a thread.

    Attributes:
        id: Its first step.
        groups: What was said in it, as far as it is not summarised yet. Its first group is what the turn is about.
        first: The step from which on it has to be kept to stay as it is here: its own first step, or where the latest
            compaction began inside of it.
        is_open: Whether it goes on.
    """

    id: str
    groups: tuple[ThreadGroup, ...]
    first: str
    is_open: bool = False

    @property
    def tokens(self) -> int:
        """What it takes."""
        return sum(group.tokens for group in self.groups)


class ThreadOutline(NamedTuple):
    """A thread in turns and groups, from its latest summary on.

    Attributes:
        turns: Oldest first; only the last may be open.
        carried: Messages from before, which were pinned when the rest was summarised.
        summary_tokens: What the summary takes that stands before all of them; 0 where there is none.
    """

    turns: tuple[ThreadTurn, ...]
    carried: tuple[ThreadGroup, ...] = ()
    summary_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBudget:
    """How short a conversation must become.

    Attributes:
        available: What a call may use at most.
        target: What it should come down to. 0 keeps no more turns than it has to.
        fixed: What system prompt, tools and so on take in any case, tokens by name.
        summary: What the summary may take at most.
        keep_turns: How many closed turns stay, as long as that fits at all.
    """

    available: int
    target: int
    fixed: Mapping[str, int] = field(default_factory=dict)
    summary: int
    keep_turns: int = 3

    @property
    def least_summary(self) -> int:
        """The tokens without which nothing is summarised: a shorter summary says nothing."""
        return min(LEAST_SUMMARY, self.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """Where the part of a thread begins that stays as it is.

    Attributes:
        first_kept: The first step that stays: `first` of a turn, or the first step of a group of the open turn; None
            where nothing stays of what there is. What the open turn is about stays in any case, and so do pinned
            messages.
        summary_tokens: How long the summary may be; None for as long as the budget allows.
    """

    first_kept: str | None
    summary_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.first_kept is not None:
            require_words(self.first_kept, "CompactionPlan.first_kept")
        require_type(self.summary_tokens, "CompactionPlan.summary_tokens", int, type(None))


@dataclass(frozen=True, slots=True)
class Fact:
    """Something in a conversation that a summary must not lose.

    Attributes:
        kind: What it is.
        text: The fact itself, as it stands in the conversation.
        note: What became of it: `changed`, `read`, `exit 1`; "" when there is nothing to say.
        step: The last step that it stands in.
        uses: In how many steps it stands.
        position: Where that step stands in the thread; later facts come first.
    """

    kind: FactClass
    text: str
    note: str = ""
    step: str = ""
    uses: int = 1
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """What became of the facts of one class.

    Attributes:
        retained: Those that stand in what the model reads from now on.
        recoverable: Those that only the ledger has, each with its step.
        lost: Those that nothing names any more.
    """

    retained: tuple[str, ...] = ()
    recoverable: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many facts there were."""
        return len(self.retained) + len(self.recoverable) + len(self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport:
    """What a compaction of a session did, or would do.

    Attributes:
        step: The compaction, by its id; None where nothing was written.
        trigger: Why.
        turns: How many turns are summarised, or parts of them.
        messages: How many messages are summarised.
        first_kept: The step from which on everything stays as it is; None where nothing stays.
        pinned: Steps before that which stay all the same.
        tokens_before: What the next call would have taken.
        tokens_after: What it takes now; where nobody has summarised, what it takes at most.
        available: What a call may take.
        summary: The summary as it is sent, with all that belongs to it; "" where nobody has summarised.
        summariser: Who wrote it.
        calls: How often somebody was asked for it.
        failures: Who was asked in vain, and what went wrong.
        fidelity: What became of the facts, by class.
        redacted: How many secrets of which kind were taken out before.
        form: How a model was asked; None where none was.
        note: Why it was asked otherwise than the settings say, such as secrets in the conversation; "" if it was not.
        planner: The plugin that decided what stays.
    """

    step: str | None
    trigger: Trigger
    turns: int
    messages: int
    first_kept: str | None
    pinned: tuple[str, ...] = ()
    tokens_before: int
    tokens_after: int
    available: int
    summary: str = ""
    summariser: str = ""
    calls: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    fidelity: Mapping[FactClass, Fidelity] = field(default_factory=dict)
    redacted: Mapping[str, int] = field(default_factory=dict)
    form: SummaryForm | None = None
    note: str = ""
    planner: str = ""


class Reverted(NamedTuple):
    """A compaction that was taken back.

    Attributes:
        step: The step that says so.
        compaction: The compaction.
        restored: The one before it, which counts again; None where everything is there in full.
    """

    step: str
    compaction: str
    restored: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """What a summariser is asked for.

    Attributes:
        prompt: The whole question as one text: what was said, and what to make of it.
        messages: What was said, in no API's shape, with secrets taken out; nothing where only `previous` is too long.
        instruction: What to make of it.
        max_tokens: How long the summary may be.
        previous: The summary of what came still earlier; it stands in `prompt` too.
        focus: What the user wants to be kept above all.
        context: The call that the conversation would have made next, for summarisers that ask the same model with the
            same beginning, so that its cache is used; None for one that stands alone.
        timeout: How many seconds it may take.
        model: The model that the conversation is with, by name; "" where nobody named one.
    """

    prompt: str
    messages: tuple[Message, ...]
    instruction: str
    max_tokens: int
    previous: str = ""
    focus: str = ""
    context: AssembledContext | None = None
    timeout: float = 120.0
    model: str = ""


Summarize = Callable[["SummaryRequest"], "str | Awaitable[str]"]
"""A function that summarises: it is given a request and answers with a text, at once or awaited. It may raise anything:
then the next one is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summariser:
    """Somebody who can summarise.

    Attributes:
        name: What `compaction.summarisers` calls it.
        summarise: Gives the summary.
        window: How many tokens it can read at once; 0 for any number.
        asks_model: Whether a model is asked, so that secrets are taken out before and money is spent.
    """

    name: str
    summarise: Summarize
    window: int = 0
    asks_model: bool = True

    def __post_init__(self) -> None:
        require_words(self.name, "Summariser.name")
        if not callable(self.summarise):
            raise ValueError("Summariser.summarise must be a function")  # noqa: TRY004 - values raise ValueError only
