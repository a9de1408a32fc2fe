"""What MCP servers cost: listing fifty beside `nexus show`, and starting eight beside starting one.

    python benchmarks/servers.py [-n RUNS]

Prints ratios with their goals. Exit code: 0 all goals met, 1 a goal missed. Needs POSIX and the extra `mcp`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from nexus_core import Nexus  # noqa: E402 - after the path is set
from nexus_plugins.mcp._cli.running import ask_all  # noqa: E402 - as above

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


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=15, metavar="RUNS")
    runs = parser.parse_args().n
    with tempfile.TemporaryDirectory() as scratch:
        home, work = Path(scratch, "home"), Path(scratch, "work")
        home.mkdir()
        work.mkdir()
        rows = [
            (f"nexus mcp list ({LISTED}) / nexus show", _listing(home, work, runs), 1.4),
            (f"{STARTED} servers / the slowest of them", _starting(home, work), 2.0),
        ]
    for name, ratio, goal in rows:
        print(f"{name:<40} {ratio:.2f}  <= {goal}  {'ok' if ratio <= goal else 'MISSED'}")
    return int(any(ratio > goal for _, ratio, goal in rows))


def _listing(home: Path, work: Path, runs: int) -> float:
    servers = [{"name": f"s{number}", "command": ["npx", "-y", f"server-{number}"]} for number in range(LISTED)]
    (home / "mcp.json").write_text(json.dumps({"servers": servers}))
    environment = {**os.environ, "NEXUS_HOME": str(home), "NEXUS_PLUGINS": "none"}
    taken: dict[str, list[float]] = {"show": [], "mcp list": []}
    for _ in range(runs):
        for command, times in taken.items():
            before = os.times()
            line = [sys.executable, "-m", "nexus_core", *command.split()]
            subprocess.run(line, cwd=work, env=environment, capture_output=True, check=True)
            after = os.times()
            times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return statistics.median(taken["mcp list"]) / statistics.median(taken["show"])


def _starting(home: Path, work: Path) -> float:
    command = [sys.executable, "-I", "-c", SERVER]
    servers = [{"name": f"s{number}", "command": command} for number in range(STARTED)]
    (home / "mcp.json").write_text(json.dumps({"servers": servers}))
    with Nexus(work, home=home) as nexus:
        request = nexus.request()
        loaded = nexus.load(request)
        ask_all(request, loaded, loaded.servers[:1])  # imports the SDK
        started = time.monotonic()
        answers = ask_all(request, loaded, loaded.servers)
        whole = time.monotonic() - started
    return whole / max(answer.seconds for answer in answers)


if __name__ == "__main__":
    sys.exit(main())
