"""Bytes in base64, of which any part can be read without decoding the rest."""

from __future__ import annotations

from binascii import Error, a2b_base64

_SAMPLE = 1000


class Base64Bytes:
    """The bytes that a text in base64 stands for. What is not base64 reads as no bytes, or as wrong ones."""

    def __init__(self, text: str) -> None:
        # In lines, as e-mail has it; nobody breaks only the later ones.
        self._text = "".join(text.split()) if len(text[:_SAMPLE].split()) > 1 else text

    def __len__(self) -> int:
        return (len(self._text) - self._text[-2:].count("=")) * 3 // 4

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset` on."""
        first, last = offset // 3, -(-(offset + length) // 3)
        return self._decode(self._text[first * 4 : last * 4])[offset - first * 3 :][:length]

    def read_all(self) -> bytes:
        """All of it."""
        return self._decode(self._text)

    @staticmethod
    def _decode(text: str) -> bytes:
        try:
            return a2b_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
        except (Error, ValueError):  # an impossible length, or not ASCII
            return b""
