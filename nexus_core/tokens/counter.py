"""What all counters have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.counting import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.values.message import Message


class TextCounter:
    """A counter that counts messages text by text; derive from it, and define `name`, `exact` and `count`.

    Attributes:
        name: What it counts with. Equal names give equal counts; caches go by it.
        exact: Whether it counts as the model does.
    """

    name: str
    exact: bool

    def count(self, text: str) -> int:
        """The tokens of a text."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a text is counted; define count(text)")

    def try_count(self, text: str) -> int | None:
        """The tokens of a text; None when its tokeniser cannot say, and `count` estimates."""
        return self.count(text)

    def count_many(self, texts: Iterable[str]) -> list[int]:
        """The tokens of each text."""
        return [self.count(text) for text in texts]

    def count_messages(self, messages: Sequence[Message]) -> int:
        """The tokens of messages: what they say, and 4 more for each."""
        from nexus_core.tokens.messages import count_messages  # noqa: PLC0415 - texts are counted without it

        return count_messages(self, messages)

    def measure(self, text: str) -> Count:
        """The tokens of a text, and how sure that number is."""
        tokens = self.try_count(text)
        if tokens is None:
            return Count(self.count(text), "estimated")
        return Count(tokens, "exact" if self.exact else "estimated")
