"""Tokens: who counts them, how sure a count is, and what models take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from nexus_core.values.checks import require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.message import Message

Basis = Literal["exact", "cached", "estimated"]
"""How sure a count is: counted now as the model counts, counted so before, or estimated."""

MESSAGE_OVERHEAD = 4
"""Tokens that a message costs beyond its words, for its role and its ends."""


class Count(NamedTuple):
    """A number of tokens, and how sure it is."""

    tokens: int
    basis: Basis


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens as some model does, or nearly so."""

    def count(self, text: str) -> int:
        """The tokens of a text."""

    def count_messages(self, messages: list[Message]) -> int:
        """The tokens of messages, with what each costs beyond its words."""


@runtime_checkable
class ModelCounter(TokenCounter, Protocol):
    """What `nexus_token_counter` answers: a `TokenCounter` that also says what it is."""

    @property
    def name(self) -> str:
        """What it counts with: `tiktoken:o200k_base`. Equal names give equal counts; caches go by it."""

    @property
    def exact(self) -> bool:
        """Whether it counts as the model does."""

    def count_many(self, texts: Iterable[str]) -> list[int]:
        """The tokens of each text; faster than one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is known of a model.

    Attributes:
        name: Its name without a date: `gpt-4o`. A trailing `*` stands for any ending. Right behind a letter or digit
            (`gpt-4o*`), an ending that is no date, size or usual word (`-mini`, `-latest`) is a guess, which is told.
        window: How many tokens fit in a call, the answer included.
        encoding: The name of its tokeniser, public or not; "" when nobody said.
        max_output: How many tokens an answer may have; 0 when nobody said.
        cache_minimum: The shortest prefix that its provider caches; 0 when it caches nothing.
        cache_breakpoints: In how many places of a call its provider is told what to keep in its cache; 0 when it finds
            out by itself.
        api: The dialect its provider speaks.
        request_bytes: How many bytes a request may have; 0 for what its API takes.
    """

    name: str
    window: int
    encoding: str = ""
    max_output: int = 0
    cache_minimum: int = 0
    cache_breakpoints: int = 0
    api: str = ""
    request_bytes: int = 0

    def __post_init__(self) -> None:
        require_words(self.name, "Model.name")
        for field in ("window", "max_output", "cache_minimum", "cache_breakpoints", "request_bytes"):
            require_type(getattr(self, field), f"Model.{field}", int)
        if self.window <= 0:
            raise ValueError(f"Model.window must be positive, not {self.window}")
        if self.request_bytes < 0:
            raise ValueError(f"Model.request_bytes must not be negative, not {self.request_bytes}")
