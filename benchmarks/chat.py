"""How soon `nexus chat -p` prints the first token beside `llm`, and what the recorder of ACP adds to a message.

    python benchmarks/chat.py [-n RUNS] [--quick] [--cache DIR] [--without-peers] [--json FILE]

Prints ratios with their goals. Exit code: 0 all goals met, 1 a goal missed. Needs POSIX and the extra `llm`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.loopback_model import LoopbackModel  # noqa: E402 - after the path is set
from benchmarks.measuring.processes import clean_environment  # noqa: E402 - as above
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from benchmarks.measuring.venvs import Peers

PING = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"text": "x" * 300}}).encode() + b"\n"
MESSAGES_PER_RUN = 100


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure the first token of nexus chat -p, and the recorder.")
    script.runs(15, quick=2)
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """The first token, then the recorder."""
    peers: Peers = given.peers
    server = ThreadingHTTPServer(("127.0.0.1", 0), LoopbackModel)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            rows = [
                *_first_token(Path(scratch), f"http://127.0.0.1:{server.server_port}", given.runs, peers),
                _recorder(Path(scratch), given.runs),
            ]
    finally:
        server.shutdown()
        server.server_close()
    return Report(rows, peers.versions, peers.missing)


def _first_token(scratch: Path, url: str, runs: int, peers: Peers) -> list[Row]:
    provider = {"provider": "openai", "model": "gpt-4o", "base_url": url}
    (scratch / "config.json").write_text(json.dumps({"provider": provider}))
    (scratch / "extra-openai-models.yaml").write_text(f"- model_id: loop\n  model_name: gpt-4o\n  api_base: {url}\n")
    paths = ":".join(sys.path[:2])
    own = {"NEXUS_HOME": str(scratch), "LLM_USER_PATH": str(scratch), "OPENAI_API_KEY": "none"}
    environment = clean_environment() | own
    commands = {"nexus chat -p": [sys.executable, "-m", "nexus_core", "chat", "-p", "Hello"]}
    if llm := peers.get("llm"):
        commands["llm"] = [llm.script("llm"), "-m", "loop", "Hello"]
    times: dict[str, list[float]] = {name: [] for name in commands}
    work = scratch / "work"
    work.mkdir()
    for number in range(runs + 1):
        for name, command in commands.items():
            more = {"PYTHONPATH": paths} if name != "llm" else {}
            seconds = _time_first_byte(command, work, environment | more)
            if number:  # the first run of each writes its caches
                times[name].append(seconds)
    if "llm" not in times:
        return []
    ours, theirs = (statistics.median(times[name]) for name in ("nexus chat -p", "llm"))
    name = "first token of nexus chat -p / of llm, same server"
    return [Row(name, ours / theirs, (Goal("<=", 0.7),), detail=f"{ours:.2f} s / {theirs:.2f} s")]


def _time_first_byte(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> float:
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=cwd, env=dict(environment)
    ) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe
        first = process.stdout.read(1)
        seconds = time.perf_counter() - started
        process.stdout.read()
    if not first or process.returncode:
        raise RuntimeError(f"{command[0]} printed nothing")
    return seconds


def _recorder(scratch: Path, runs: int) -> Row:
    environment = clean_environment() | {"NEXUS_HOME": str(scratch), "PYTHONPATH": ":".join(sys.path[:2])}
    recorder = [sys.executable, "-m", "nexus_core", "acp", "--", "/bin/cat"]
    direct = _time_round_trip(["/bin/cat"], scratch / "work", environment, runs)
    recorded = _time_round_trip(recorder, scratch / "work", environment, runs)
    added = (recorded - direct) * 1000
    return Row(
        "milliseconds that the ACP recorder adds to a message and its response",
        added,
        (Goal("<=", 2),),
        detail=f"{recorded * 1000:.2f} ms / {direct * 1000:.2f} ms",
    )


def _time_round_trip(command: Sequence[str], cwd: Path, environment: Mapping[str, str], runs: int) -> float:
    """The median time until a program has repeated a line."""
    times: list[float] = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, env=dict(environment), bufsize=0
    ) as process:
        assert process.stdin is not None  # noqa: S101 - a pipe
        assert process.stdout is not None  # noqa: S101 - as above
        for _ in range(runs * MESSAGES_PER_RUN):
            started = time.perf_counter()
            process.stdin.write(PING)
            received = b""
            while not received.endswith(b"\n"):
                received += process.stdout.read(65536)
            times.append(time.perf_counter() - started)
        process.stdin.close()
    return statistics.median(times[len(times) // 5 :])  # in the first, the program starts


if __name__ == "__main__":
    sys.exit(main())
