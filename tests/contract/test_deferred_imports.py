"""Modules are imported at the top; only a door imports inside functions what a caller may not need.

A door is an `__init__`, the facade `nexus_core/nexus.py`, the command line, and a plugin's `_cli.py`. Anywhere else an
import inside a function names a package that others have made, or one of `DEFERRED`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

DEFERRED = {
    # Behind these is a package of others that takes long to load or may be missing: pydantic, PyYAML, markdown-it, the
    # SDK of MCP, sqlite3.
    "nexus_core.config.schema",
    "nexus_core.config.validate",
    "nexus_core.text.markdown",
    "nexus_core.text.markdown_stream",
    "nexus_core.text.yaml_head",
    "nexus_plugins.ledger.sqlite",
    "nexus_plugins.ledger.sqlite.database",
    "nexus_plugins.mcp._connections",
    "nexus_plugins.mcp._oauth",
    "nexus_plugins.mcp._transport",
    "nexus_plugins.providers._settings",
    # Few runs need these: settings with comments or errors, what needs approval, files of other tools.
    "nexus_core.config.excerpt",
    "nexus_core.config.jsonc",
    "nexus_core.config.secrets",
    "nexus_core.config.servers",
    "nexus_core.trust.coverage",
    "nexus_core.trust.fingerprint",
    "nexus_core.trust.report",
    "nexus_core.trust.store",
    "nexus_core.types.mcp",
    "nexus_plugins.file_layers._imports",
    "nexus_plugins.mcp._other_tools",
    "nexus_plugins.mcp._toml",
    # A prompt without a call (`nexus show`) needs none of these, and a check of messages no plugin.
    "nexus_core.dialects.neutral",
    "nexus_core.dialects.plugin_dialect",
    "nexus_core.host.manager",
    "nexus_core.ledger.codec",
    "nexus_core.request.prefix",
    "nexus_core.types.api",
    "nexus_core.types.assembled",
    "nexus_core.types.messages",
    # The count of a text needs no messages, and is all that many programs ask for.
    "nexus_core.tokens.messages",
    # A call without memories and without a summary needs none of these, and few sessions are ever repaired or deleted.
    "nexus_core.compaction.compact",
    "nexus_core.compaction.undo",
    "nexus_core.ledger.deletion",
    "nexus_core.ledger.in_memory",
    "nexus_core.ledger.rebuild",
    "nexus_core.ledger.verify",
    "nexus_core.request.memories",
    "nexus_core.request.write",
}
"""Modules of ours that others import inside a function. Before you add one, measure a start (benchmarks/startup.py)."""


def is_door(path: Path) -> bool:
    return (
        path.name in ("__init__.py", "_cli.py")
        or path == Path("nexus_core/nexus.py")
        or path.is_relative_to("nexus_core/cli")
    )


def find_deferred_imports(source: str) -> set[str]:
    """The modules of ours that are imported inside functions."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    nodes = [node for function in functions for node in ast.walk(function)]
    modules = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            is_folder = (ROOT / node.module.replace(".", "/")).is_dir()  # then the names may be modules in it
            modules |= {f"{node.module}.{each.name}" for each in node.names} if is_folder else {node.module}
    return {module for module in modules if module.startswith(("nexus_core.", "nexus_plugins."))}


def list_deferred_imports() -> set[str]:
    paths = [*(ROOT / "nexus_core").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]
    inner = [path for path in paths if not is_door(path.relative_to(ROOT))]
    return {module for path in inner for module in find_deferred_imports(path.read_text(encoding="utf-8"))}


def test_modules_behind_the_doors_are_imported_at_the_top() -> None:
    assert sorted(list_deferred_imports() - DEFERRED) == []


def test_the_list_of_deferred_modules_has_no_other() -> None:
    assert sorted(DEFERRED - list_deferred_imports()) == []


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("from nexus_core.ledger.verify import verify_store", "nexus_core.ledger.verify"),
        ("from nexus_core.ledger import deletion", "nexus_core.ledger.deletion"),
        ("import nexus_core.request.write", "nexus_core.request.write"),
    ],
)
def test_an_import_inside_a_method_is_found(line: str, module: str) -> None:
    source = f"class A:\n    async def b(self):\n        if self:\n            {line}\n"

    assert find_deferred_imports(source) == {module}


def test_an_import_at_the_top_is_not_found() -> None:
    source = "from nexus_core.request.write import build_writer\n"

    assert find_deferred_imports(source) == set()
