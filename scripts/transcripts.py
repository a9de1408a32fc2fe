"""Measure what the readers of transcripts lose, and what is lost on the way to another agent's file and back.

`python scripts/transcripts.py` tries the samples of the tests. With directories as arguments, it tries the transcripts
below them, too: `sessions/<program>/…`, or `sessions/other/<program>/…`.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nexus_core.errors import MessageError  # noqa: E402 - needs the path
from nexus_core.transcripts.read import gather_transcript, read_transcript  # noqa: E402 - needs the path
from tests.transcripts.support import AGENTS, SAMPLES  # noqa: E402 - needs the path
from tests.transfer.round_trips import FORMATS, WRITERS, find_lost_on_the_way  # noqa: E402 - needs the path
from tests.transfer.session_contents import ImportedFile, import_file  # noqa: E402 - needs the path

SHOWN = 100


def main(directories: list[str]) -> None:
    """Print both tables, and below them everything that was lost."""
    below = [path for directory in directories for path in Path(directory).rglob("*")]
    files = sorted(path for path in [*SAMPLES.iterdir(), *AGENTS.iterdir(), *below] if path.is_file())
    imported = {path: import_file(path) for path in files}
    print_import_table(imported)
    print_round_trip_table([path for path, found in imported.items() if not found.refused])


def print_import_table(imported: dict[Path, ImportedFile]) -> None:
    """Print by format how many files were tried, and what became of their texts, calls and results."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for found in imported.values():
        for name in (found.program, "all"):
            rows[name].update({"files": 1, found.outcome: 1, "contents": found.contents})
    columns = ("files", "lossless", "lossy", "refused", "wrong", "contents")
    print(f"{'format':14}", *(f"{name:>9}" for name in columns))
    for name in sorted(rows, key=lambda each: (each == "all", each)):
        print(f"{name:14}", *(f"{rows[name][column]:9,}" for column in columns))
    for path, found in imported.items():
        if found.outcome != "lossless":
            print(f"{found.outcome}: {path}: {found.refused or found.format}")
            print(*(f"    {each[:SHOWN]!r}\n" for each in found.missing), sep="", end="")


def print_round_trip_table(files: list[Path]) -> None:
    """Print by format of the first file and of the second how many ways there and back lose nothing."""
    tried: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for path in files:
        text = gather_transcript(path, FORMATS) or path.read_text(encoding="utf-8")
        try:
            transcript = read_transcript(text, str(path), formats=FORMATS)
        except MessageError:  # several conversations
            continue
        for way, lost in find_lost_on_the_way(transcript):
            tried[way].update({"tried": 1, "lossless": int(not lost)})
            print(*(f"{path}: {' to '.join(way)}: {each[:SHOWN]!r}\n" for each in lost), sep="", end="")
    print(f"\n{'from / through':14}", *(f"{name:>13}" for name in WRITERS))
    for form in sorted({first for first, _ in tried}):
        cells = (f"{tried[form, way]['lossless']} of {tried[form, way]['tried']}" for way in WRITERS)
        print(f"{form:14}", *(f"{cell:>13}" for cell in cells))
    total = sum(tried.values(), Counter[str]())
    print(f"lossless: {total['lossless']:,} of {total['tried']:,}")


if __name__ == "__main__":
    main(sys.argv[1:])
