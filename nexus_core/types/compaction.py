"""Compaction: the outline of a thread, plans, summarizers and reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from nexus_core.deprecation import renamed_attribute
from nexus_core.types.base import dataclass, require_text, require_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Message

CompactionTrigger = Literal["context_limit", "overflow_recovery", "manual", "periodic"]
"""The reason for a compaction: the call does not fit, a provider rejected it, the user asked, or it was due."""

FactClass = Literal["decision", "path", "command", "error", "identifier", "url", "number"]
"""The kind of a fact that was found in a conversation."""

FACT_CLASSES: tuple[FactClass, ...] = get_args(FactClass)

MIN_SUMMARY_TOKENS = 200
"""Tokens below which a summary is too short to be useful."""

SummaryForm = Literal["standalone", "cached"]
"""The form of the request to a model: the conversation as one text, or the conversation's own messages followed by an
instruction, so that the provider's prompt cache is used."""

SummaryRole = Literal["user", "system"]
"""The role of the message that holds a session's summary."""


class ThreadMessage(NamedTuple):  # a NamedTuple, because a thread has many
    """A message of a thread, as a model reads it.

    Attributes:
        message: The message.
        step: The id of its step.
        turn: The id of its turn.
        position: The position of the step in the thread.
        tokens: The tokens of the message.
        is_input: True if it is the input of its turn.
    """

    message: Message
    step: str
    turn: str = ""
    position: int = 0
    tokens: int = 0
    is_input: bool = False


class ThreadGroup(NamedTuple):
    """Messages of complete steps that are kept or summarized together, such as a call with its results.

    Attributes:
        messages: The messages in their order.
        pinned: True if one of the steps is pinned, so that they are never summarized.
    """

    messages: tuple[ThreadMessage, ...]
    pinned: bool = False

    @property
    def steps(self) -> tuple[str, ...]:
        """The ids of their steps."""
        return tuple(dict.fromkeys(each.step for each in self.messages))

    @property
    def tokens(self) -> int:
        """The tokens of all messages."""
        return sum(each.tokens for each in self.messages)


class ThreadTurn(NamedTuple):
    """A turn of a thread.

    Attributes:
        id: The id of its first step.
        groups: Its messages that are not summarized yet. The first group is the input of the turn.
        first: The id of the first step to keep so that the turn stays complete: its own first step, or the first one
            that the latest compaction kept if that began inside the turn.
        is_open: True if the turn is not finished.
    """

    id: str
    groups: tuple[ThreadGroup, ...]
    first: str
    is_open: bool = False

    @property
    def tokens(self) -> int:
        """The tokens of all groups."""
        return sum(group.tokens for group in self.groups)


class ThreadOutline(NamedTuple):
    """The turns and groups of a thread since its latest summary.

    Attributes:
        turns: The turns, oldest first; only the last may be open.
        carried: Pinned messages from before the summary.
        summary_tokens: Tokens of the summary before them; 0 if there is none.
    """

    turns: tuple[ThreadTurn, ...]
    carried: tuple[ThreadGroup, ...] = ()
    summary_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBudget:
    """Token limits of a compaction.

    Attributes:
        available: Maximum tokens of a call.
        target: Tokens that the call should have afterwards. 0 keeps as few turns as possible.
        fixed: Tokens that a compaction cannot reduce, such as system prompt and tools, by name.
        summary: Maximum tokens of the summary.
        keep_turns: Number of closed turns to keep if they fit.
    """

    available: int
    target: int
    fixed: Mapping[str, int] = field(default_factory=dict)
    summary: int
    keep_turns: int = 3

    @property
    def least_summary(self) -> int:
        """Tokens that a summary needs at least to be useful; with fewer, nothing is summarized."""
        return min(MIN_SUMMARY_TOKENS, self.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The point of a thread up to which it is summarized.

    Attributes:
        first_kept: The id of the first step to keep: `first` of a turn, or the first step of a group of the open turn;
            None to keep no step. The input of the open turn and pinned messages are always kept.
        summary_tokens: Maximum tokens of the summary; None for the limit of the budget.
        kept_steps: Ids of steps before `first_kept` that stay, all those of a group or none: the input and the answer
            of a recent turn whose other groups are summarized.
    """

    first_kept: str | None
    summary_tokens: int | None = None
    kept_steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.first_kept is not None:
            require_text(self.first_kept, "CompactionPlan.first_kept")
        for step in self.kept_steps:
            require_text(step, "CompactionPlan.kept_steps")
        require_type(self.summary_tokens, "CompactionPlan.summary_tokens", int, type(None))


@dataclass(frozen=True, slots=True)
class Fact:
    """A detail of a conversation that a summary must not lose, such as a path or an error.

    Attributes:
        kind: The kind of detail.
        text: Its literal text in the conversation.
        note: Its outcome, such as `changed`, `read`, `exit 1` or `rejected`; "" for none.
        step: The id of the last step that contains it.
        uses: The number of steps that contain it.
        position: The position of `step` in the thread; later facts come first.
    """

    kind: FactClass
    text: str
    note: str = ""
    step: str = ""
    uses: int = 1
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The facts of one class that a compaction retained, left in the ledger, or lost.

    Attributes:
        retained: Facts in the messages that the model still reads.
        recoverable: Facts that only the ledger contains, each with the id of its step.
        lost: Facts that neither contains.
    """

    retained: tuple[str, ...] = ()
    recoverable: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of facts before the compaction."""
        return len(self.retained) + len(self.recoverable) + len(self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport:
    """The outcome of a compaction, or of a dry run.

    Attributes:
        step: The id of the compaction step; None if nothing was written.
        trigger: The reason for the compaction.
        turns: Number of turns that are summarized, in full or in part.
        messages: Number of messages that are summarized.
        first_kept: The id of the first step that is kept; None if none is.
        pinned: Ids of earlier steps that are kept: pinned ones, and ends of recent turns that are summarized in part.
        tokens_before: Tokens of the next call without the compaction.
        tokens_after: Tokens of the next call with it; an upper bound for a dry run.
        available: Maximum tokens of a call.
        summary: The summary as it is sent, with its extracted facts; "" for a dry run.
        summarizer: The name of the summarizer that wrote it.
        calls: Number of requests to summarizers.
        failures: Summarizers that failed, each with its error.
        fidelity: Retention of the facts, by class.
        redacted: Number of secrets removed before summarizing, by kind.
        form: The form of the request to a model; None if no model was asked.
        note: Why the form differs from the settings, such as secrets in the conversation; "" if it does not.
        planner: The plugin that decided what is kept.
    """

    step: str | None
    trigger: CompactionTrigger
    turns: int
    messages: int
    first_kept: str | None
    pinned: tuple[str, ...] = ()
    tokens_before: int
    tokens_after: int
    available: int
    summary: str = ""
    summarizer: str = ""
    calls: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    fidelity: Mapping[FactClass, Fidelity] = field(default_factory=dict)
    redacted: Mapping[str, int] = field(default_factory=dict)
    form: SummaryForm | None = None
    note: str = ""
    planner: str = ""

    summariser = renamed_attribute("CompactionReport", "summariser", "summarizer")


class RevertedCompaction(NamedTuple):
    """A compaction that was undone.

    Attributes:
        step: The id of the step that undoes it.
        compaction: The id of the compaction step.
        restored: The id of the previous compaction, which applies again; None if there is none.
    """

    step: str
    compaction: str
    restored: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """The arguments of a summarizer.

    Attributes:
        prompt: The complete prompt as one text: conversation and instruction.
        messages: The messages to summarize, in the neutral format, with secrets removed; empty if only `previous` is
            to be shortened.
        instruction: The instruction on how to summarize.
        max_tokens: Maximum tokens of the summary.
        previous: The summary of everything earlier; `prompt` contains it too.
        focus: What the user wants to keep above all.
        context: The next call of the conversation, for summarizers that ask the same model with the same prefix, so
            that its prompt cache is used; None for a standalone request.
        timeout: Maximum seconds of the request.
        model: The name of the conversation's model; "" if there is none.
        evidence: The user's words and the facts that are shown beside the summary, so that it need not repeat them;
            `prompt` contains them too; "" if none are shown.
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
    evidence: str = ""


SummarizeFunction = Callable[["SummaryRequest"], "str | Awaitable[str]"]
"""A function that returns the summary, or an awaitable of it. If it raises, the next summarizer is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarizer:
    """A named function that summarizes conversations.

    Attributes:
        name: Its name in the setting `compaction.summarizers`.
        summarise: Returns the summary of a request.
        window: Maximum tokens of a request; 0 for no limit.
        asks_model: True if it calls a model, which costs money and must not see secrets: they are removed before.
    """

    name: str
    summarise: SummarizeFunction
    window: int = 0
    asks_model: bool = True

    def __post_init__(self) -> None:
        require_text(self.name, "Summarizer.name")
        if not callable(self.summarise):
            raise ValueError("Summarizer.summarise must be a function")  # noqa: TRY004 - values raise ValueError only
