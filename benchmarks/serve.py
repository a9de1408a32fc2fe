"""How many `get_tokens` a second `nexus serve` answers on one connection.

    python benchmarks/serve.py [-n RUNS] [--quick] [--json FILE]

Prints rates with their goals. Exit code: 0 all goals met, 1 a goal missed. Needs POSIX and the extra `serve`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.loopback_model import LoopbackModel  # noqa: E402 - after the path is set
from benchmarks.measuring.processes import clean_environment  # noqa: E402 - as above
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

TURNS = 10
REQUESTS_PER_RUN = 500
BATCH = 50


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure get_tokens of nexus serve on one connection.")
    script.runs(7, quick=2)
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """The rate in batches, and of single requests."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), LoopbackModel)
    Thread(target=model.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            rates = _measure_rates(Path(scratch), f"http://127.0.0.1:{model.server_port}", given.runs)
    finally:
        model.shutdown()
        model.server_close()
    return Report(
        [
            Row("get_tokens a second on one connection, in batches of 50", rates[BATCH], (Goal(">=", 1000),)),
            Row("get_tokens a second on one connection, each a request", rates[1], (Goal(">=", 1000),)),
        ]
    )


def _measure_rates(scratch: Path, url: str, runs: int) -> dict[int, float]:
    """The highest rate of each size of batch; the rounds take turns."""
    provider = {"provider": "openai", "model": "gpt-4o", "base_url": url}
    (scratch / "config.json").write_text(json.dumps({"provider": provider}))
    rates = {BATCH: 0.0, 1: 0.0}
    with _start_server(scratch) as (connection, headers):

        def post(body: object) -> Any:  # noqa: ANN401 - JSON
            connection.request("POST", "/", json.dumps(body), headers)
            return json.loads(connection.getresponse().read())

        call = {"jsonrpc": "2.0", "method": "get_tokens", "params": ["a"], "id": 1}
        post(call | {"method": "create_agent"})
        for _ in range(TURNS):
            post(call | {"method": "send", "params": ["a", "Hello."]})
        for _ in range(runs):
            for size in (BATCH, 1):
                body = call if size == 1 else [call] * size
                started = time.perf_counter()
                for _ in range(REQUESTS_PER_RUN // size):
                    post(body)
                rates[size] = max(rates[size], REQUESTS_PER_RUN / (time.perf_counter() - started))
        post(call | {"method": "shutdown", "params": []})
    return rates


@contextmanager
def _start_server(scratch: Path) -> Iterator[tuple[HTTPConnection, dict[str, str]]]:
    own = {"NEXUS_HOME": str(scratch), "OPENAI_API_KEY": "none", "PYTHONPATH": ":".join(sys.path[:2])}
    work = scratch / "work"
    work.mkdir()
    command = [sys.executable, "-m", "nexus_core", "serve", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=work, env=clean_environment() | own
    ) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe
        try:
            process.stdout.readline()
            process.stdout.readline()
            address = json.loads((scratch / "server.json").read_text())
            connection = HTTPConnection("127.0.0.1", int(address["url"].rpartition(":")[2]))
            yield connection, {"Authorization": f"Bearer {address['token']}", "Content-Type": "application/json"}
            connection.close()
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
