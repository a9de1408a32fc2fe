"""An MCP server of a project, its files, and what an approval of it looks like."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nexus_core.testing import write_files
from nexus_core.trust.fingerprint import build_server_content, describe_server
from nexus_core.types.mcp import ActiveSetting

TOKEN = "ghp_planted0in0env"  # noqa: S105 - planted, to be looked for
BEARER = "Bearer planted-in-headers"

STDIO: dict[str, Any] = {
    "name": "files",
    "type": "stdio",
    "command": "./bin/serve",
    "args": ["server.js", "--config=conf/app.ini", "--port", "8080"],
    "env": {"GITHUB_TOKEN": TOKEN, "MODE": "fast"},
    "env_passthrough": ["LANG"],
    "cwd": "tools",
    "enabled": True,
    "timeout": 30,
}
HTTP: dict[str, Any] = {
    "name": "remote",
    "type": "http",
    "url": "https://mcp.example.com/v1?tenant=a",
    "headers": {"Authorization": BEARER, "X-Team": "auth"},
}
FILES = {
    "tools/bin/serve": "#!/bin/sh\n",
    "tools/bin/other": "#!/bin/sh\n",
    "tools/server.js": "start();\n",
    "tools/conf/app.ini": "[app]\n",
    "tools/unrelated.js": "unrelated();\n",
    "tools/sibling.js": "sibling();\n",
    "tools/.git/HEAD": "ref\n",
    "tools/__pycache__/x.cpython-313.pyc": "\x01\x02mm\0\0\0\0bytecode\n",
    "docs/unrelated.js": "unrelated();\n",
    "bin/serve": "#!/bin/sh\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace with the files that the servers name, two of them programs."""
    root = write_files(tmp_path / "project", FILES)
    for program in ("tools/bin/serve", "tools/bin/other", "bin/serve"):
        (root / program).chmod(0o755)
    return root


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's home, not made yet."""
    return tmp_path / "home" / ".nexus3"


def server_part(server: Mapping[str, object], root: Path) -> ActiveSetting:
    """The active part that a server in a project's mcp.json is."""
    return ActiveSetting(
        path=root / ".nexus3/mcp.json",
        layer="local",
        pointer="/mcp_servers/files",
        line=3,
        summary=describe_server(server),
        content=build_server_content(server, root),
    )


def plain_part(root: Path, name: str = "files", content: str = "{}") -> ActiveSetting:
    """An active part about nothing in particular."""
    path = root / ".nexus3/mcp.json"
    return ActiveSetting(
        path=path, layer="local", pointer=f"/mcp_servers/{name}", line=1, summary="node server.js", content=content
    )
