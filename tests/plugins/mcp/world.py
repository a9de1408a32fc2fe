"""Servers to test on: honest ones, hostile ones, and who is still alive afterwards."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core.testing import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core import Nexus
    from nexus_core.plugin.settings import MCPServerWithOrigin

# Without the SDK, which takes a second to import; what is said is what any server says.
SERVER = """
import json, os, subprocess, sys, time
TOOLS = json.loads(os.environ.get("TOOLS", "null")) or [
    {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}]
def say(**body): sys.stdout.write(json.dumps({"jsonrpc": "2.0", **body}) + "\\n"); sys.stdout.flush()
def begin(id):
    say(id=id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "test", "version": "1"}})
def list_tools(id): say(id=id, result={"tools": TOOLS})
def call(id, name, arguments):
    say(id=id, result={"content": [{"type": "text", "text": json.dumps([name, arguments])}]})
@EVIL@
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize": begin(id)
    elif method == "tools/list": list_tools(id)
    elif method == "tools/call": call(id, params["name"], params.get("arguments"))
    elif id is not None and method: say(id=id, error={"code": -32601, "message": "unknown"})
"""

FOREVER = 600
"""Seconds that they sleep."""
EVIL = {
    "hangs at the beginning": "def begin(id): time.sleep(600)",
    "prints without end before it says who it is": """
def begin(id):
    while True: sys.stdout.write("noise\\n" * 1000)
""",
    "prints messages without end": """
def call(id, name, arguments):
    while True: say(method="notifications/message", params={"level": "info", "data": "x"})
""",
    "dies in the middle of a call": "def call(id, name, arguments): os._exit(3)",
    "prints a line of 100 MB": """
def call(id, name, arguments):
    for _ in range(1600): sys.stdout.write("x" * 65536)
    sys.stdout.flush(); time.sleep(600)
""",
    "answers somebody else": "def call(id, name, arguments): say(id=9999, result={'content': []})",
    "never answers": "def call(id, name, arguments): pass",
    "starts children that outlive it": """
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
def call(id, name, arguments): time.sleep(600)
""",
    "starts children that leave it": """
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"])
def call(id, name, arguments): time.sleep(600)
""",
    "starts children that hide": """
hidden = [sys.executable, "-c", "import time; time.sleep(600)", os.environ["TEST_HOME"]]
subprocess.Popen(hidden, start_new_session=True, env={})
def call(id, name, arguments): time.sleep(600)
""",
    "starts children without end": """
def call(id, name, arguments):
    while True:
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
        time.sleep(0.02)
""",
    "closes its output and stays": """
def call(id, name, arguments): os.close(1); time.sleep(600)
""",
    "asks without end and does not listen": """
def call(id, name, arguments):
    while True: say(id="q", method="roots/list")
""",
    "asks a thousand things at once and does not listen": """
def call(id, name, arguments):
    asked = "".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}) + "\\n" for n in range(1000))
    while True: sys.stdout.write(asked)
""",
    "asks without end and takes it back": """
def call(id, name, arguments):
    while True:
        say(id="q", method="roots/list"); say(id="q", method="roots/list")
        say(method="notifications/cancelled", params={"requestId": "q"})
""",
    "hangs when it should list its tools": "def list_tools(id): time.sleep(600)",
    "lists its tools without end": """
def list_tools(id): say(id=id, result={"tools": [], "nextCursor": "again"})
""",
    "describes its tools in 10 MB": """
TOOLS[0]["description"] = "x" * 10_000_000
""",
    "does not listen when it is told to end": """
import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
def call(id, name, arguments):
    while True: time.sleep(600)
""",
    "hangs at the beginning, with children, and does not listen": """
import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
def begin(id):
    while True: time.sleep(600)
""",
    "says nonsense": "def call(id, name, arguments): say(id=id, result={'content': 7})",
    "complains without end": """
def call(id, name, arguments):
    while True: sys.stderr.write("x" * 65536)
""",
}


def script(evil: str = "") -> list[str]:
    return [sys.executable, "-I", "-S", "-c", SERVER.replace("@EVIL@", evil)]


def define(home: Path, **commands: object) -> None:
    """The user's own servers, by name: a command, or all of what is said about one."""
    # By this variable its own processes are told from those of other tests.
    own = {"TEST_HOME": str(home)}
    servers = []
    for name, said in commands.items():
        entry: dict[str, Any] = said if isinstance(said, dict) else {"command": said}
        servers.append({"name": name, **entry, **({"env": own | entry.get("env", {})} if "command" in entry else {})})
    write_files(home, {"mcp.json": json.dumps({"servers": servers})})


def servers_of(nexus: Nexus) -> dict[str, MCPServerWithOrigin]:
    return {server.config.name: server for server in nexus.load().servers}


def survivors(home: Path) -> list[str]:
    """The processes that a server of this test left behind, after those that were ended had time to be gone."""
    deadline = time.monotonic() + 10  # where the machine is busy, whoever is ended may have to wait for it
    while (found := alive(home)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def alive(home: Path) -> list[str]:
    """The processes of the servers of this test."""
    return list(_marked(home))


def _marked(home: Path) -> Iterator[str]:
    mine = f"TEST_HOME={home}\0".encode()
    named = f"\0{home}\0".encode()  # what has no environment
    for entry in os.listdir("/proc"):  # noqa: PTH208 - hundreds of them
        if entry.isdecimal():
            with suppress(OSError):
                command = Path("/proc", entry, "cmdline").read_bytes()
                if mine in Path("/proc", entry, "environ").read_bytes() or named in command:
                    yield command.decode()[:200]
