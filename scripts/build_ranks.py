"""Builds the rank tables that the plugin `tiktoken_counter` counts with.

    python scripts/build_ranks.py [ARCHIVE] [--check]

ARCHIVE is any wheel that carries tiktoken's own files `cl100k_base.tiktoken` and `o200k_base.tiktoken`, under whatever
name; without one, `llama-index-core` is downloaded with pip. A file is recognised by the SHA-256 that the installed
tiktoken expects of it, so what is built is what tiktoken itself would load. Patterns and special tokens are tiktoken's.

`--check` writes nothing and exits with 1 when the tables would differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from base64 import b64decode
from binascii import crc32
from pathlib import Path
from typing import NamedTuple

import tiktoken_ext.openai_public as public  # type: ignore[import-untyped] # it has no types

from nexus_plugins.tiktoken_counter._short_texts import build_index

FOLDER = Path(__file__).resolve().parent.parent / "plugins/nexus_plugins/tiktoken_counter/ranks"
ENCODINGS = ("cl100k_base", "o200k_base")
CARRIER = "llama-index-core"
SEPARATOR = b"\xff"
"""A byte that no text in UTF-8 has, and so no token but the one for this byte itself."""


class Encoding(NamedTuple):
    """What tiktoken says about an encoding, without its ranks."""

    name: str
    sha256: str
    pattern: str
    special_tokens: dict[str, int]


def main() -> int:
    """Build, write or compare, and return the exit code."""
    parser = argparse.ArgumentParser(description="Build the rank tables of the plugin tiktoken_counter.")
    parser.add_argument("archive", type=Path, nargs="?", help=f"a wheel that carries the ranks ({CARRIER})")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if something would change")
    options = parser.parse_args()
    encodings = [describe(name) for name in ENCODINGS]
    with tempfile.TemporaryDirectory() as scratch:
        archive = options.archive or download(Path(scratch))
        sources = find_sources(archive, {encoding.sha256 for encoding in encodings})
    files = build(encodings, sources)
    stale = [name for name, content in files.items() if not is_same(FOLDER / name, content)]
    for name in stale:
        print(f"stale: {name}" if options.check else f"written: {name} ({len(files[name]):,} bytes)")
        if not options.check:
            (FOLDER / name).write_bytes(files[name])
    return int(bool(stale) and options.check)


def describe(name: str) -> Encoding:
    """What tiktoken says about an encoding; its loader is replaced meanwhile, so that nothing is fetched."""
    asked: list[str] = []

    def note(_address: str, expected_hash: str) -> dict[bytes, int]:
        asked.append(expected_hash)
        return {}

    loader = public.load_tiktoken_bpe
    public.load_tiktoken_bpe = note
    try:
        facts = getattr(public, name)()
    finally:
        public.load_tiktoken_bpe = loader
    return Encoding(name, asked[0], facts["pat_str"], facts["special_tokens"])


def download(directory: Path) -> Path:
    """The newest wheel that carries the ranks."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(directory), CARRIER]
    subprocess.run(command, check=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def find_sources(archive: Path, wanted: set[str]) -> dict[str, bytes]:
    """The files of an archive that have one of these digests."""
    found: dict[str, bytes] = {}
    with zipfile.ZipFile(archive) as wheel:
        for member in wheel.infolist():
            content = wheel.read(member)
            digest = hashlib.sha256(content).hexdigest()
            if digest in wanted:
                found[digest] = content
    if missing := wanted - found.keys():
        sys.exit(f"{archive.name} does not carry the files with these digests: {', '.join(sorted(missing))}")
    return found


def build(encodings: list[Encoding], sources: dict[str, bytes]) -> dict[str, bytes]:
    """The contents of the folder by name."""
    files = {f"{encoding.name}.ranks": flatten(sources[encoding.sha256]) for encoding in encodings}
    files |= {f"{encoding.name}.index": build_index(files[f"{encoding.name}.ranks"]) for encoding in encodings}
    tables = {
        encoding.name: {
            "crc32": crc32(files[f"{encoding.name}.ranks"]),
            "origin_sha256": encoding.sha256,
            "pattern": encoding.pattern,
            "special_tokens": encoding.special_tokens,
            "index_crc32": crc32(files[f"{encoding.name}.index"]),
        }
        for encoding in encodings
    }
    return {**files, "tables.json": (json.dumps(tables, indent=2) + "\n").encode()}


def flatten(source: bytes) -> bytes:
    """The tokens in the order of their ranks, a separator between them; Python splits it at once, in C.

    Nothing stands where the separator itself is the token.
    """
    ranked = [line.split() for line in source.splitlines()]
    tokens = [b64decode(token) for token, _ in ranked]
    if [int(rank) for _, rank in ranked] != list(range(len(ranked))):
        sys.exit("the ranks have gaps; a flat table cannot hold them")
    if b"" in tokens or [token for token in tokens if SEPARATOR in token] != [SEPARATOR]:
        sys.exit("a token cannot be told from the separator; a flat table cannot hold it")
    return SEPARATOR.join(b"" if token == SEPARATOR else token for token in tokens)


def is_same(path: Path, content: bytes) -> bool:
    """Whether a file has this content."""
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    sys.exit(main())
