"""tiktoken's own files, where tiktoken looks for what it has downloaded before: so it needs no network."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from benchmarks.measuring.venvs import ROOT

if TYPE_CHECKING:
    from pathlib import Path

RANKS = ROOT / "plugins/nexus_plugins/tiktoken_counter/ranks"
FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
"""By encoding, the name of the file: the SHA-1 of the address it is fetched from."""
SEPARATOR = b"\xff"


def write_tables(directory: Path) -> Path:
    """Write the files that the bundled tables were made of, byte for byte, and return the directory.

    tiktoken compares their digests, so it is measured with its own files or not at all.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for encoding, name in FILES.items():
        tokens = (RANKS / f"{encoding}.ranks").read_bytes().split(SEPARATOR)
        tokens[tokens.index(b"")] = SEPARATOR  # the one token that has it, and is nothing else
        lines = [b"%s %d\n" % (b64encode(token), rank) for rank, token in enumerate(tokens)]
        (directory / name).write_bytes(b"".join(lines))
    return directory
