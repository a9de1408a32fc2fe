"""The file that was imported, kept as it was: what no message says is found there, and it can be given back.

In pieces of the same size, so that of a file that only grows each piece is kept once.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

from nexus_core.errors import LedgerError

if TYPE_CHECKING:
    from nexus_core.types.ledger import Ledger

PIECE = 1 << 20
_QUICK = 1
"""How hard to compress: a transcript says most things twice, which is found at once."""


def keep_source(ledger: Ledger, content: bytes) -> str:
    """Keep the bytes of a file; returns the address of the list of its pieces."""
    pieces = [zlib.compress(content[at : at + PIECE], _QUICK) for at in range(0, len(content), PIECE)]
    digests = ledger.put_blobs(pieces)
    return ledger.put_blob(json.dumps({"zlib": digests}).encode())


def source_pieces(ledger: Ledger, address: str) -> list[str]:
    """The addresses of the pieces of a file."""
    listed = json.loads(_blob(ledger, address))
    return [str(each) for each in listed["zlib"]]


def read_source(ledger: Ledger, address: str) -> bytes:
    """The bytes of a file that was kept.

    Raises:
        LedgerError: A piece of it is missing.
    """
    return b"".join(zlib.decompress(_blob(ledger, each)) for each in source_pieces(ledger, address))


def _blob(ledger: Ledger, digest: str) -> bytes:
    content = ledger.blob(digest)
    if content is None:
        hint = "`nexus ledger verify` says what else is missing"
        raise LedgerError(f"the file that was imported is not whole: there is no blob {digest}", hint=hint)
    return content
