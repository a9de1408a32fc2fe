"""Records the conversations of the goldens anew, into `tests/golden/net/recorded.sql.gz`.

    python scripts/record_ledger.py

The file proves that what was stored once is still read, and replayed byte for byte, so it is written anew only when
conversations are added. Run `make goldens` afterwards.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.golden.conftest import STORED, dumped, recorded  # noqa: E402 - after the path is set
from tests.golden.world import RECORDED, World, claimed_root  # noqa: E402 - as above


def main() -> int:
    """Record, write, and return the exit code."""
    with claimed_root(RECORDED) as root, tempfile.TemporaryDirectory() as scratch:
        content = dumped(recorded(World(root), Path(scratch)))
    STORED.parent.mkdir(parents=True, exist_ok=True)
    STORED.write_bytes(content)
    print(f"{STORED.relative_to(ROOT)}: {len(content):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
