"""Files that hold what was printed once; `make goldens` writes them anew."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

import pytest

NET = Path(__file__).with_name("net")
WRITES = os.environ.get("NEXUS_GOLDENS") == "write"
"""Whether goldens are written instead of compared."""
ANY = "<digest of a path>"
"""In the place of a digest that depends on the directory."""
_DIGEST = re.compile(rf"\b[0-9a-f]{{32,}}\b|{ANY}")
_SHOWN = 400
"""So many lines of a difference are shown."""


def path_of(area: str, name: str) -> Path:
    """The file of a golden."""
    assert re.fullmatch(r"[a-z0-9-]+", name), name
    return NET / area / f"{name}.txt"


def write(path: Path, text: str, other: str) -> None:
    """Write a golden, made twice in two directories: what differs are digests of texts with the directory in them."""
    digests = iter(_DIGEST.findall(other))
    masked = _DIGEST.sub(lambda found: found[0] if next(digests, "") == found[0] else ANY, text)
    assert masked == align(other, masked), "what is printed depends on the directory"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(masked, encoding="utf-8", newline="")


def align(text: str, golden: str) -> str:
    """The text, without the digests that the golden does not have either."""
    wanted = iter(_DIGEST.findall(golden))
    return _DIGEST.sub(lambda found: ANY if next(wanted, "") == ANY else found[0], text)


def compare(path: Path, text: str) -> None:
    """Fail with what is different, if anything is."""
    if not path.exists():
        pytest.fail(f"there is no {path.relative_to(NET.parent)}; `make goldens` writes it", pytrace=False)
    golden = path.read_bytes().decode("utf-8")
    text = align(text, golden)
    if text != golden:
        lines = list(
            difflib.unified_diff(
                golden.splitlines(), text.splitlines(), str(path.relative_to(NET)), "now", lineterm="", n=2
            )
        )
        more = [f"… and {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
        shown = lines[:_SHOWN] or ["only line ends or characters that cannot be seen differ:", repr(text)]
        pytest.fail("\n".join([*shown, *more, "If that is wanted: make goldens"]), pytrace=False)
