"""The token counter, on splintr where it is installed, else on tiktoken."""

from __future__ import annotations

from binascii import crc32
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nexus_core import NexusError
from nexus_core.plugin import TextCounter, estimate
from nexus_core.plugin.text import cut_pieces
from nexus_plugins.tiktoken_counter._short_texts import load_short_text_encoder
from nexus_plugins.tiktoken_counter._tables import DEFAULT_ENCODING, get_table, load_encoder, require_tiktoken

if TYPE_CHECKING:
    from collections.abc import Callable

ESTIMATE_NAME = "estimate"
"""The name of the core's estimator."""
_MAX_UNCUT_CHARACTERS = 16_000
"""Characters of a text that is encoded at once, because it never exceeds the size of a piece."""


class TiktokenCounter(TextCounter):
    """Counts tokens with the encodings of OpenAI. Special tokens count as ordinary text.

    The encoder is loaded when the first text is counted. If that fails, the counter becomes an estimator, also by
    name; a text on which the encoder fails is estimated.

    Args:
        encoding_name: `cl100k_base`, `o200k_base` or `o200k_harmony`.
        exact: True if it is the encoding of the model.

    Raises:
        UnknownNameError: The encoding is not bundled.
        NexusError: tiktoken cannot be imported, or its tables cannot be read.
    """

    def __init__(self, encoding_name: str = DEFAULT_ENCODING, *, exact: bool = True) -> None:
        require_tiktoken()
        self._table = get_table(encoding_name).name
        self.encoding_name = encoding_name
        self.name = f"tiktoken:{self._table}"
        self.exact = exact
        self._encode: Callable[[str], list[int]] | None = None

    def count(self, text: str) -> int:
        """Return the number of tokens in a text."""
        tokens = self.try_count(text)
        return estimate(text) if tokens is None else tokens

    def try_count(self, text: str) -> int | None:
        """Return the number of tokens in a text, or None if the encoder fails, in which case `count` estimates."""
        encode = self._encode
        if encode is None:
            tokens = self._count_short(text)
            if tokens is not None:
                return tokens
            encode = self._load()
        if encode is None:
            return None
        try:
            if len(text) <= _MAX_UNCUT_CHARACTERS:
                return len(encode(text))
            return sum(len(encode(piece)) for piece in cut_pieces(text))
        except UnicodeEncodeError:
            return self.try_count(replace_surrogates(text))
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a panic in the extension is not an Exception
            return None

    def _count_short(self, text: str) -> int | None:
        """Return the number of tokens in an ASCII text while the process has counted little, None for other texts."""
        try:
            return load_short_text_encoder(self._table).count_within_limit(text)
        except NexusError:  # a damaged table, which the tokenizer reports if it needs it
            return None

    def _load(self) -> Callable[[str], list[int]] | None:
        try:
            self._encode = load_engine(self._table)
        except NexusError as error:
            # Sizes are stored with the counter's name, and estimates must not pass for counts later.
            self.exact, self.name = False, ESTIMATE_NAME
            _warn_once(str(error))
        return self._encode


@cache
def _warn_once(reason: str) -> None:
    from logging import getLogger

    getLogger("nexus_plugins.tiktoken_counter").warning("tokens are estimated: %s", reason)


if TYPE_CHECKING:
    Encode = Callable[[str], list[int]]

PROBE_TEXT = (
    "It's 2024: a naïve café — 你好, мир, नमस्ते! 🙂👩\u200d👧 ١٢٣\r\n\tdef f(x):\n        return x+1  \n<|endoftext|>"
)
"""A text with every kind of input that tokenizers treat differently."""
PROBE_CHECKSUMS = {"cl100k_base": 2903062258, "o200k_base": 2295095981}
"""The checksum of the tokens of `PROBE_TEXT`, by table."""


@cache
def load_engine(table_name: str) -> Encode:
    """Return the encoder function of a table, loaded once per process.

    Raises:
        NexusError: The table is damaged, or tiktoken cannot be used.
    """
    return load_splintr(table_name) or load_encoder(table_name).encode_ordinary


def load_splintr(table_name: str) -> Encode | None:
    """Return splintr's encoder, or None if it is not installed, fails, or encodes differently from the table."""
    if not has_splintr():
        return None
    try:
        from splintr import Tokenizer

        encode: Encode = Tokenizer.from_pretrained(table_name).encode_ordinary
        # Splintr bundles its own tables, which may change with a release, so its tokens are checked.
        if crc32(repr(encode(PROBE_TEXT)).encode()) == PROBE_CHECKSUMS[table_name]:
            return encode
        reason = f"it does not count as {table_name} says"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in the extension is not an Exception
        reason = str(error)
    from logging import getLogger

    message = "splintr is not used, tiktoken counts in its place: %s; upgrade or uninstall splintr-rs"
    getLogger("nexus_plugins.tiktoken_counter").warning(message, reason)
    return None


def has_splintr() -> bool:
    """Return True if splintr is installed."""
    return find_spec("splintr") is not None


def replace_surrogates(text: str) -> str:
    """Return a text without lone surrogates, which tiktoken replaces itself and splintr rejects."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
