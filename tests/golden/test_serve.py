"""`nexus mcp serve`: what a client is told, in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import without_install, without_words
from tests.golden.conftest import Golden
from tests.golden.test_commands import BROKEN
from tests.golden.trees import PLAIN, ROOT
from tests.golden.world import World

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "net", "version": "1"}}
CASES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "hello-and-tools": [("tools/list", {})],
    "calls": [
        ("tools/call", {"name": "search_history", "arguments": {"session": "undone", "text": "rounded", "limit": 2}}),
        ("tools/call", {"name": "read_steps", "arguments": {"session": "tools", "limit": 4}}),
        ("tools/call", {"name": "explain_source", "arguments": {"query": "make check"}}),
        ("tools/call", {"name": "check_messages", "arguments": {"messages": BROKEN["openai"], "api": "anthropic"}}),
        (
            "tools/call",
            {"name": "count_tokens", "arguments": {"text": "Why does the total differ?", "model": "gpt-4o"}},
        ),
        ("tools/call", {"name": "no_such_tool", "arguments": {}}),
    ],
}


def _served(world: World, ledger: Path, asked: list[tuple[str, dict[str, Any]]]) -> str:
    world.write(PLAIN)
    shutil.copy(ledger, world.home / "ledger.db")
    lines: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
            for number, (method, given) in enumerate(asked, 1)
        ),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "nexus_core", "-C", "work", "mcp", "serve"],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env=os.environ
        | {"NEXUS_PLUGINS": "none,-environment", "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])},
        cwd=world.root,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda answer: answer["id"])
    told = without_words(answers, frozenset({"description", "instructions"}))
    return without_install(world.mask(json.dumps(told, indent=1, ensure_ascii=False) + "\n"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_client_is_told_what_it_was(name: str, golden: Golden, stored: dict[Path, Path]) -> None:
    golden("serve", name, lambda world: _served(world, stored[world.root], CASES[name]))
