"""`nexus mcp`, one file per kind of work.

looking.py   list, tools          nothing is started, unless tools are asked for that nobody knows yet
running.py   test, call           servers are started
pinning.py   pin                  what changed in the tools of a server, and approval of it
changing.py  add, remove, enable, disable
moving.py    import, export       from and to the files of other tools
serving.py   serve                Nexus itself as a server
loop.py      runs what starts servers, so that none is left behind when a command is broken off
"""

from __future__ import annotations

from nexus_plugins.mcp._cli import changing, looking, moving, pinning, running, serving
from nexus_plugins.mcp._cli.options import app

__all__ = ["app", "changing", "looking", "moving", "pinning", "running", "serving"]
