"""What SECURITY.md promises is held by the tests that it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PROMISES = re.split(r"^\d+\. ", PAGE.partition("## What we promise\n")[2].partition("\n## ")[0], flags=re.MULTILINE)[1:]
TESTS = re.findall(r"^ +- `(tests/\S+)::(\w+)`$", PAGE, re.MULTILINE)
LISTENING = {"listen", "create_server", "start_server", "start_unix_server", "HTTPServer", "TCPServer", "serve_forever"}


@pytest.mark.parametrize(
    "promise", PROMISES, ids=lambda promise: promise.partition("*")[2].partition(".")[0].strip("*")
)
def test_a_promise_names_a_test(promise: str) -> None:
    assert promise.startswith("**")
    assert "\n    - `tests/" in promise


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_a_test_that_is_named_is_there(path: str, name: str) -> None:
    assert re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_there_are_fifteen_promises_and_every_test_is_written_in_the_same_way() -> None:
    assert len(PROMISES) == 15
    assert len(TESTS) == PAGE.count("::test_")


def listens(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text))) if any(word in text for word in LISTENING) else []
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return not LISTENING.isdisjoint(attributes | {node.id for node in nodes if isinstance(node, ast.Name)})


def test_only_the_rpc_server_opens_a_port(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("import asyncio\nasyncio.start_server(print, port=80)\n")
    modules = [*ROOT.glob("plugins/**/*.py"), *ROOT.glob("nexus_core/**/*.py")]

    assert listens(tmp_path / "server.py")
    assert [path for path in modules if listens(path)] == [ROOT / "nexus_core/rpc/server.py"]
