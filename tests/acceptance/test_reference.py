"""What the page about context says is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nexus_core.context
from nexus_core.context import LoadedContext
from tests.conftest import ROOT

PAGE = (ROOT / "docs/reference/context.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    environment = {**os.environ, "NEXUS_HOME": str(tmp_path), "NEXUS_PLUGINS": "none"}

    outcome = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, text=True, capture_output=True, check=True
    )

    company = ROOT / "examples/acme/company"
    assert f"local {company}/backend/auth-service/.nexus3 True\n" in outcome.stdout
    assert f"ancestor:company {company}/.nexus3 True\n" in outcome.stdout


LOADING = ["ContextLayer", "ContextLoader", "ContextSources", "LoadedContext", "LoadedPrompt", "LoadedSource"]
LOADING += ["MCPServerConfig", "MCPServerWithOrigin", "PromptLoader", "PromptSource", "FilePromptSource"]
LOADING += [
    "ContextManager",
    "TokenBudget",
    "Conversation",
    "Message",
    "Text",
    "Image",
    "File",
    "Reasoning",
    "ToolCall",
]
LOADING += ["ToolResult", "Opaque", "TokenCounter", "TiktokenCounter", "SimpleTokenCounter", "get_token_counter"]
LOADING += ["deep_merge", "get_system_info", "Config", "ContextConfig"]


@pytest.mark.parametrize("name", LOADING)
def test_every_name_is_there_and_on_the_page(name: str) -> None:
    assert name in nexus_core.context.__all__
    assert f"`{name}" in PAGE or f"## {name}\n" in PAGE


def test_every_attribute_of_a_context_that_the_page_lists_exists() -> None:
    page = PAGE.partition("## LoadedContext\n")[2].partition("\n## ")[0]

    names = [name for row in re.findall(r"^- (.*?):", page, re.MULTILINE) for name in re.findall(r"`(\w+)", row)]

    assert {"system_prompt", "config", "mcp_servers", "sources", "layers", "for_subagent"} <= set(names)
    assert [name for name in names if not hasattr(LoadedContext, name)] == []
