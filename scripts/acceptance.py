"""Lists which behaviours of the specification are proved by tests, from the markers `@pytest.mark.acceptance("L-03")`.

python scripts/acceptance.py                            every marked ID, and how many tests prove it
python scripts/acceptance.py TABLE.md 'L-*' 'B-0[4-7]'  those IDs of a table, proved or not; exit 1 if one is not
python scripts/acceptance.py --tests …                  with the names of the tests
"""

from __future__ import annotations

import io
import re
import sys
from collections import defaultdict
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]

_ROW = re.compile(r"^\| *([A-Z]+-?\d+) *\|", re.MULTILINE)


def main() -> int:
    """Print the list, and return the exit code."""
    arguments = [each for each in sys.argv[1:] if each != "--tests"]
    tables = [each for each in arguments if each.endswith(".md")]
    wanted = [each for each in arguments if each not in tables] or ["*"]
    proofs = collect()
    known = {row for table in tables for row in _ROW.findall(Path(table).read_text(encoding="utf-8"))}
    rows = sorted(row for row in (known if tables else proofs) if any(fnmatchcase(row, each) for each in wanted))
    for row in sorted(rows, key=_order):
        tests = sorted(proofs.get(row, ()))
        print(f"{row:6} {len(tests) or 'no test'}")
        if "--tests" in sys.argv:
            print(*(f"       {test}\n" for test in tests), sep="", end="")
    missing = [row for row in rows if row not in proofs]
    print(f"{len(rows) - len(missing)} of {len(rows)} proved")
    return 1 if missing else 0


def collect() -> dict[str, set[str]]:
    """The tests by the IDs that they prove; the cases of one test count once."""
    proofs: dict[str, set[str]] = defaultdict(set)

    class Collector:
        def pytest_collection_modifyitems(self, items: Iterable[pytest.Item]) -> None:
            for item in items:
                for marker in item.iter_markers("acceptance"):
                    for row in marker.args:
                        proofs[row].add(item.nodeid.partition("[")[0])

    options = ["--collect-only", "-qq", "--rootdir", str(ROOT)]
    with redirect_stdout(io.StringIO()) as output:
        code = pytest.main([*options, str(ROOT / "tests")], plugins=[Collector()])
    if code != pytest.ExitCode.OK:
        sys.exit("\n".join(line for line in output.getvalue().splitlines() if line.startswith(("E ", "ERROR "))))
    return dict(proofs)


def _order(row: str) -> tuple[str, int]:
    letters = row.rstrip("0123456789")
    return letters, int(row.removeprefix(letters))


if __name__ == "__main__":
    sys.exit(main())
