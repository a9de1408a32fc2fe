"""Measure redaction: shapes of secrets that are redacted, and what is redacted in files without secrets.

`python scripts/redaction.py` tries the shapes of tests/text/secret_samples.py. With directories as arguments, it also
prints each redaction in their files, to be looked at, and how many there are per MB.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nexus_core.text.secret_patterns import find_secrets  # noqa: E402 - as above
from nexus_core.text.secrets import redact  # noqa: E402 - found by the line above
from tests.text.secret_samples import ORDINARY, SAMPLES  # noqa: E402 - as above

MEGABYTE = 1_000_000
MAX_BYTES = 64 * MEGABYTE
SHOWN_BEFORE, SHOWN = 40, 60


def missed_shapes() -> list[str]:
    """Return the names of the shapes that survive redaction."""
    redacted = {name: redact(sample.text).text for name, sample in SAMPLES.items()}
    return [name for name, sample in SAMPLES.items() if any(secret in redacted[name] for secret in sample.secrets)]


def read_texts(directories: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the files below some directories that are text."""
    for directory in directories:
        for path in sorted(Path(directory).rglob("*")):
            if path.is_file() and path.stat().st_size <= MAX_BYTES:
                try:
                    yield path, path.read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    continue


def main(directories: list[str]) -> None:
    """Print both numbers; without directories only the first."""
    missed = missed_shapes()
    false = [text for text in ORDINARY if redact(text).counts]
    print(f"shapes redacted: {len(SAMPLES) - len(missed)} of {len(SAMPLES)}", *missed)
    print(f"ordinary lines redacted: {len(false)} of {len(ORDINARY)}", *false)
    size = found = 0
    seconds = 0.0
    for path, text in read_texts(directories):
        start = time.process_time()
        spans = find_secrets(text)
        seconds += time.process_time() - start
        size += len(text)
        found += len(spans)
        for span in spans:
            before = text[max(span.start - SHOWN_BEFORE, 0) : span.start]
            print(f"{path}: {span.kind}: {before!r} {text[span.start : span.end][:SHOWN]!r}")
    if size:
        per_megabyte = MEGABYTE / size
        print(f"redactions: {found} in {size / MEGABYTE:.1f} MB, {found * per_megabyte:.2f} per MB")
        print(f"time: {seconds * per_megabyte * 1000:.0f} ms per MB")


if __name__ == "__main__":
    main(sys.argv[1:])
