"""Who makes tokens of a text: splintr where it is installed, which is faster, else tiktoken."""

from __future__ import annotations

from binascii import crc32
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from nexus_plugins.tiktoken_counter._tables import load_encoder

if TYPE_CHECKING:
    from collections.abc import Callable

    Encode = Callable[[str], list[int]]

PROBE = (
    "It's 2024: a naïve café — 你好, мир, नमस्ते! 🙂👩\u200d👧 ١٢٣\r\n\tdef f(x):\n        return x+1  \n<|endoftext|>"
)
"""A text with something of everything that tokenisers treat each in its own way."""
CRC32 = {"cl100k_base": 2903062258, "o200k_base": 2295095981}
"""The checksum of its tokens, by table."""


@cache
def load_engine(table_name: str) -> Encode:
    """What makes tokens of a text, as the table says; made once for the process.

    Raises:
        NexusError: The table is damaged, or tiktoken cannot be used.
    """
    return load_splintr(table_name) or load_encoder(table_name).encode_ordinary


def load_splintr(table_name: str) -> Encode | None:
    """Splintr's encoder; None where it is not installed, cannot be used, or does not encode as the table says."""
    if not has_splintr():
        return None
    try:
        from splintr import Tokenizer  # noqa: PLC0415 - as heavy as tiktoken

        encode: Encode = Tokenizer.from_pretrained(table_name).encode_ordinary
        # Its tables are its own, in releases of its own: it may not be the cause of a silent wrong number.
        if crc32(repr(encode(PROBE)).encode()) == CRC32[table_name]:
            return encode
        reason = f"it does not count as {table_name} says"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in the extension is no Exception
        reason = str(error)
    from logging import getLogger  # noqa: PLC0415 - seldom needed

    message = "splintr is not used, tiktoken counts in its place: %s; upgrade or uninstall splintr-rs"
    getLogger("nexus_plugins.tiktoken_counter").warning(message, reason)
    return None


def has_splintr() -> bool:
    """Whether splintr is installed."""
    return find_spec("splintr") is not None


def join_halves(text: str) -> str:
    """A text without halves of characters, which tiktoken replaces by itself and splintr refuses."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
