"""What takes the place of an earlier conversation, and who writes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from nexus_core.values.checks import require_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.message import Message

Trigger = Literal["context_limit", "overflow_recovery", "manual", "periodic"]
"""Why a conversation is compacted: it does not fit; a provider refused it; somebody asked; it was time."""

FactClass = Literal["path", "command", "identifier", "url", "number", "error"]
"""What kind of fact was found in a conversation."""


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
class SummaryRequest:
    """What a summariser is asked for.

    Attributes:
        prompt: The whole question as one text: what was said, and what to make of it.
        messages: What was said, in no API's shape, with secrets taken out.
        instruction: What to make of it.
        max_tokens: How long the summary may be.
        previous: The summary of what came still earlier; it stands in `prompt` too.
        focus: What the user wants to be kept above all.
        context: The call that the conversation would have made next, for summarisers that ask the same model with the
            same beginning, so that its cache is used; None for one that stands alone.
        timeout: How many seconds it may take.
    """

    prompt: str
    messages: tuple[Message, ...]
    instruction: str
    max_tokens: int
    previous: str = ""
    focus: str = ""
    context: AssembledContext | None = None
    timeout: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summariser:
    """Somebody who can summarise.

    Attributes:
        name: What `compaction.summarisers` calls it.
        summarise: Gives the summary, at once or awaited. It may raise anything: then the next one is asked.
        window: How many tokens it can read at once; 0 for any number.
        asks_model: Whether a model is asked, so that secrets are taken out before and money is spent.
    """

    name: str
    summarise: Callable[[SummaryRequest], str | Awaitable[str]]
    window: int = 0
    asks_model: bool = True

    def __post_init__(self) -> None:
        require_words(self.name, "Summariser.name")
        if not callable(self.summarise):
            raise ValueError("Summariser.summarise must be a function")  # noqa: TRY004 - values raise ValueError only
