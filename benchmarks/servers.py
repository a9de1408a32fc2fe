"""What MCP servers cost: listing fifty beside `nexus show`, and starting eight beside starting one.

    python benchmarks/servers.py [-n RUNS] [--quick] [--json FILE]

Prints ratios with their goals. Exit code: 0 all goals met, 1 a goal missed. Needs POSIX and the extra `mcp`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.processes import Command, clean_environment, measure_medians  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import CannotMeasureError, Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Comparison, Goal, Row, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import Nexus  # noqa: E402 - as above
from nexus_plugins.mcp._cli import fetch_catalogs  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

LISTED, STARTED = 50, 8
SLEEP = 1.0
"""Seconds that a server takes to start, so that what is measured is waiting and not this machine."""
SERVER = f"""
import json, sys, time
time.sleep({SLEEP})
for line in sys.stdin:
    message = json.loads(line)
    body = {{"error": {{"code": -32601, "message": "unknown"}}}}
    if message["method"] == "initialize":
        body = {{"result": {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                "serverInfo": {{"name": "slow", "version": "1"}}}}}}
    elif message["method"] == "tools/list":
        body = {{"result": {{"tools": []}}}}
    if "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **body}}), flush=True)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure what MCP servers cost.")
    script.runs(15, quick=3)
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Listing, then starting."""
    with tempfile.TemporaryDirectory() as scratch:
        home, work = Path(scratch, "home"), Path(scratch, "work")
        home.mkdir()
        work.mkdir()
        rows = _listing(home, work, given.runs)
        try:
            rows.append(_starting(home, work))
        except ImportError as error:
            raise CannotMeasureError(f"the extra `mcp` is not installed: {error}") from error
    return Report(rows, {"mcp": version("mcp")})


def _listing(home: Path, work: Path, runs: int) -> list[Row]:
    servers = [{"name": f"s{number}", "command": ["npx", "-y", f"server-{number}"]} for number in range(LISTED)]
    (home / "mcp.json").write_text(json.dumps({"servers": servers}))
    settings = {"NEXUS_HOME": str(home), "NEXUS_PLUGINS": "none", "PYTHONPATH": os.pathsep.join(sys.path[:2])}
    listing, showing = f"nexus mcp list, {LISTED} servers", "nexus show"
    commands = [
        Command(name, (sys.executable, "-m", "nexus_core", *words), work, clean_environment() | settings)
        for name, words in ((listing, ("mcp", "list")), (showing, ("show",)))
    ]
    return compare(measure_medians(commands, runs), [Comparison(listing, showing, (Goal("<=", 1.4),))])


def _starting(home: Path, work: Path) -> Row:
    command = [sys.executable, "-I", "-c", SERVER]
    servers = [{"name": f"s{number}", "command": command} for number in range(STARTED)]
    (home / "mcp.json").write_text(json.dumps({"servers": servers}))
    with Nexus(work, home=home) as nexus:
        request = nexus.request()
        loaded = nexus.load(request)
        fetch_catalogs(request, loaded, loaded.servers[:1])  # imports the SDK
        started = time.monotonic()
        answers = fetch_catalogs(request, loaded, loaded.servers)
        whole = time.monotonic() - started
    slowest = max(answer.seconds for answer in answers)
    return Row(
        f"starting {STARTED} servers / the slowest of them",
        whole / slowest,
        (Goal("<=", 2),),
        detail=f"{whole:.2f} s / {slowest:.2f} s",
    )


if __name__ == "__main__":
    sys.exit(main())
