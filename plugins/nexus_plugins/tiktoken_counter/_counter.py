"""The counter."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from nexus_core import NexusError
from nexus_core.plugin import TextCounter, cut_pieces, estimate
from nexus_plugins.tiktoken_counter._encodings import DEFAULT
from nexus_plugins.tiktoken_counter._engines import join_halves, load_engine
from nexus_plugins.tiktoken_counter._tables import ensure_available, table_for

if TYPE_CHECKING:
    from collections.abc import Callable

ESTIMATE = "estimate"
"""The name of the core's own estimates."""
_SHORT = 16_000
"""Characters that never need to be cut."""


class TiktokenCounter(TextCounter):
    """Counts as the models of OpenAI do. Special tokens count as the text they are written with.

    The encoder is made when the first text is counted. Where it cannot be made, the counter becomes an estimate, in
    its name too; a text that the encoder fails on is estimated.

    Args:
        encoding_name: `cl100k_base`, `o200k_base` or `o200k_harmony`.
        exact: Whether it is the encoding of the model that is counted for.

    Raises:
        UnknownNameError: The encoding is not bundled.
        NexusError: tiktoken cannot be imported, or its tables cannot be read.
    """

    def __init__(self, encoding_name: str = DEFAULT, *, exact: bool = True) -> None:
        ensure_available()
        self._table = table_for(encoding_name).name
        self.encoding_name = encoding_name
        self.name = f"tiktoken:{self._table}"
        self.exact = exact
        self._encode: Callable[[str], list[int]] | None = None

    def count(self, text: str) -> int:
        """The tokens of a text."""
        tokens = self.try_count(text)
        return estimate(text) if tokens is None else tokens

    def try_count(self, text: str) -> int | None:
        """The tokens of a text; None when the tokeniser cannot say, and `count` estimates."""
        encode = self._encode or self._load()
        if encode is None:
            return None
        try:
            if len(text) <= _SHORT:
                return len(encode(text))
            return sum(len(encode(piece)) for piece in cut_pieces(text))
        except UnicodeEncodeError:
            return self.try_count(join_halves(text))
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a panic in the extension is no Exception
            return None

    def _load(self) -> Callable[[str], list[int]] | None:
        try:
            self._encode = load_engine(self._table)
        except NexusError as error:
            # Sizes are stored under the counter's name: estimates must not pass for counts later.
            self.exact, self.name = False, ESTIMATE
            _warn_once(str(error))
        return self._encode


@cache
def _warn_once(reason: str) -> None:
    from logging import getLogger  # noqa: PLC0415 - seldom needed

    getLogger("nexus_plugins.tiktoken_counter").warning("tokens are estimated: %s", reason)
