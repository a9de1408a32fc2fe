"""The code that stands in the specification, run as it stands there, beside what Nexus does."""

from __future__ import annotations

import dataclasses
import json
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import nexus_core.context
from nexus_core import Nexus
from nexus_core.context import ContextLayer, ContextLoader, ContextSources, LoadedContext, LoadedPrompt
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.effort import examples

FIND_ANCESTORS = '''
def _find_ancestor_configs(self, cwd: Path, max_levels: int = 2) -> list[Path]:
    """Find .nexus3 directories in ancestor paths."""
    ancestors = []
    current = cwd.parent

    for _ in range(max_levels):
        if current == current.parent:  # Reached root
            break
        config_dir = current / ".nexus3"
        if config_dir.exists():
            ancestors.append(config_dir)
        current = current.parent

    # Return in order: grandparent first, then parent (for correct merge order)
    return list(reversed(ancestors))
'''
MERGE = '''
def _merge_configs(self, layers: list[dict]) -> dict:
    """Deep merge config layers. Later layers extend earlier ones."""
    result = {}
    for layer in layers:
        result = deep_merge(result, layer)
    return result

def deep_merge(base: dict, override: dict) -> dict:
    """Recursively merge dicts. Lists are concatenated, not replaced."""
    result = base.copy()
    for key, value in override.items():
        if key in result and isinstance(result[key], dict) and isinstance(value, dict):
            result[key] = deep_merge(result[key], value)
        elif key in result and isinstance(result[key], list) and isinstance(value, list):
            result[key] = result[key] + value  # Extend lists
        else:
            result[key] = value
    return result
'''
STRUCTURES = '''
@dataclass
class LoadedContext:
    """Result of loading all context layers."""

    # Prompt content (already merged and labeled)
    system_prompt: str

    # Merged configuration
    config: Config

    # Merged MCP servers (with origin tracking)
    mcp_servers: list[MCPServerWithOrigin]

    # Source tracking for debugging
    sources: ContextSources

@dataclass
class ContextSources:
    """Tracks where each piece of context came from."""
    global_dir: Path | None
    ancestor_dirs: list[Path]
    local_dir: Path | None

    prompt_sources: list[PromptSource]  # (path, layer_name)
    config_sources: list[Path]
    mcp_sources: list[Path]

@dataclass
class MCPServerWithOrigin:
    """MCP server config with its origin layer."""
    config: MCPServerConfig
    origin: str  # "global", "ancestor:company", "local"
    source_path: Path
'''
LAYER = '''
@dataclass
class ContextLayer:
    """A single layer of context (global, ancestor, or local)."""

    name: str              # "global", "ancestor:company", "local"
    path: Path             # Directory path

    prompt: str | None     # NEXUS.md content
    config: dict | None    # config.json content (pre-validation)
    mcp: dict | None       # mcp.json content
'''
AGENT = """
if agent_config.system_prompt is not None:
    system_prompt = agent_config.system_prompt
else:
    # Create loader for agent's specific cwd
    effective_cwd = agent_config.cwd or Path.cwd()
    context_loader = ContextLoader(effective_cwd)
    loaded_context = context_loader.load()
    system_prompt = loaded_context.system_prompt
"""
SUBAGENT = '''
def load_subagent_context(agent_cwd: Path, parent_context: LoadedContext) -> str:
    """Load context for subagent, avoiding duplication with parent."""

    # Check if agent's cwd NEXUS.md is already in parent's context
    agent_nexus = agent_cwd / ".nexus3" / "NEXUS.md"
    if agent_nexus in parent_context.sources.prompt_sources:
        # Already loaded by parent - use parent context as-is
        return parent_context.system_prompt

    # Load agent's cwd NEXUS.md and prepend to parent context
    if agent_nexus.exists():
        agent_prompt = agent_nexus.read_text()
        return f"""## Subagent Configuration
Source: {agent_nexus}

{agent_prompt}

{parent_context.system_prompt}"""

    # No local NEXUS.md - use parent context
    return parent_context.system_prompt
'''
SETTINGS = '''
class ContextConfig(BaseModel):
    """Configuration for context loading."""

    ancestor_depth: int = Field(
        default=2,
        ge=0,
        le=10,
        description="How many directory levels above CWD to search for .nexus3/"
    )
    include_readme: bool = Field(
        default=False,
        description="Always include README.md in context alongside NEXUS.md"
    )
    readme_as_fallback: bool = Field(
        default=True,
        description="Use README.md as context when no NEXUS.md exists"
    )
'''
EXAMPLE_SETTINGS = """
{
  "context": {
    "ancestor_depth": 3,
    "include_readme": false,
    "readme_as_fallback": true
  }
}
"""
PROMPT = """
@dataclass
class LoadedPrompt:
    content: str           # Combined prompt with headers and system info
    personal_path: Path | None  # Path to personal/default prompt
    project_path: Path | None   # Path to project prompt (if loaded)
"""
CUSTOM_SOURCES = """
from nexus3.context.prompt_loader import FilePromptSource, PromptLoader
from pathlib import Path

# Custom personal sources
sources = [
    FilePromptSource(Path("/custom/path/NEXUS.md")),
    FilePromptSource(Path.home() / ".nexus3" / "NEXUS.md"),
]

loader = PromptLoader(personal_sources=sources)
result = loader.load()
print(f"Personal from: {result.personal_path}")
print(f"Project from: {result.project_path}")
"""
SERVER_MODE = """
# Load prompts for HTTP server (different system info)
loader = PromptLoader()
result = loader.load(is_repl=False)  # Mode: HTTP JSON-RPC Server
"""
RELOADING = """
# Reload system prompt during compaction
loader = PromptLoader()
fresh_prompt = loader.load().content
"""
SNIPPETS = {
    "fb377020d91417f2": FIND_ANCESTORS,
    "ba2c6bad3d1835d5": MERGE,
    "dc7bf2040e8bc4b2": STRUCTURES,
    "b2f2d1cafba6f5f5": LAYER,
    "1b4238b27bf20465": AGENT,
    "20f6f4c6547e4b1a": SUBAGENT,
    "596e43c3326c0e37": SETTINGS,
    "2d223e5bec70f42d": EXAMPLE_SETTINGS,
    "24ac1f3664da5bab": PROMPT,
    "23304b8646dd47bb": CUSTOM_SOURCES,
    "13edd9920f931e07": SERVER_MODE,
    "79d500a4371c776c": RELOADING,
}
"""The code by its digest, as it was when it was compared with the specification."""


def run(source: str, **names: object) -> dict[str, Any]:
    """What a piece of code of the specification leaves behind."""
    names = {"Path": Path, "dataclass": dataclasses.dataclass, "BaseModel": BaseModel, "Field": Field, **names}
    names["__name__"] = "specification"
    # Types are not looked up: the specification names some that it does not define.
    exec(compile(f"from __future__ import annotations\n{source}", "<specification>", "exec"), names)  # noqa: S102 - ours
    return names


def fields_of(source: str, name: str) -> list[str]:
    # A module of that name must be there, where the types could be looked up.
    return [field.name for field in dataclasses.fields(run(source)[name])]


@pytest.fixture(autouse=True)
def specified_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules under the names that the specification imports them by."""
    for name in ("nexus3", "nexus3.context"):
        monkeypatch.setitem(sys.modules, name, nexus_core.context)
    monkeypatch.setitem(sys.modules, "nexus3.context.prompt_loader", nexus_core.context.prompt_loader)
    monkeypatch.setitem(sys.modules, "specification", ModuleType("specification"))


@pytest.mark.parametrize(("digest", "snippet"), SNIPPETS.items(), ids=lambda value: value.strip().split("\n")[0])
def test_the_code_is_that_of_the_specification(digest: str, snippet: str) -> None:
    assert sha256(snippet.encode()).hexdigest()[:16] == digest


# ---- layers ------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("L-03", "L-04", "L-06")
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(levels=st.lists(st.booleans(), min_size=1, max_size=6), depth=st.integers(0, 10))
def test_ancestors_are_those_that_the_specified_search_finds(
    tmp_path_factory: pytest.TempPathFactory, nexus_home: Path, levels: list[bool], depth: int
) -> None:
    place = tmp_path_factory.mktemp("root")
    for number, is_layer in enumerate(levels):
        place = place / f"level{number}"
        (place / ".nexus3" if is_layer else place).mkdir(parents=True)
    write_files(nexus_home, {"config.json": json.dumps({"context": {"ancestor_depth": depth}})})

    with Nexus(place, home=nexus_home) as nexus:
        found = nexus.context().sources.ancestor_dirs

    assert found == run(FIND_ANCESTORS)["_find_ancestor_configs"](None, place, depth)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=10,
)
merge_as_specified = run(MERGE)["_merge_configs"]
OBJECTS = st.dictionaries(st.text("ab", max_size=2), JSON, max_size=4)


@pytest.mark.acceptance("F-01", "F-02", "F-03", "F-04")
@given(st.lists(OBJECTS, max_size=4))
def test_settings_merge_as_the_specified_function_merges_them(layers: list[dict[str, object]]) -> None:
    merged: dict[str, object] = {}
    for layer in layers:
        merged = nexus_core.context.deep_merge(merged, layer)

    assert merged == merge_as_specified(None, layers)


@pytest.mark.acceptance("L-13", "P-13", "P-14", "M-05", "E-05")
def test_the_structures_have_the_specified_fields(make_nexus: MakeNexus) -> None:
    context = make_nexus().context()

    assert all(hasattr(context, name) for name in fields_of(STRUCTURES, "LoadedContext"))
    assert list(ContextSources._fields) == fields_of(STRUCTURES, "ContextSources")
    origin_fields = [field.name for field in dataclasses.fields(nexus_core.context.MCPServerWithOrigin)]
    assert origin_fields[:3] == fields_of(STRUCTURES, "MCPServerWithOrigin")
    assert [field.name for field in dataclasses.fields(ContextLayer)] == fields_of(LAYER, "ContextLayer")
    assert [field.name for field in dataclasses.fields(LoadedPrompt)] == fields_of(PROMPT, "LoadedPrompt")


@pytest.mark.acceptance("F-11", "L-07")
def test_the_settings_of_loading_have_the_specified_defaults_and_bounds() -> None:
    specified = run(SETTINGS)["ContextConfig"].model_json_schema()["properties"]

    ours = nexus_core.context.ContextConfig.model_json_schema()["properties"]

    keys = {"default", "minimum", "maximum", "type"}
    for name, field in specified.items():
        assert {key: ours[name].get(key) for key in keys} == {key: field.get(key) for key in keys}


@pytest.mark.acceptance("F-11")
def test_the_specified_example_of_settings_loads(make_nexus: MakeNexus) -> None:
    config = make_nexus(files={".nexus3/config.json": EXAMPLE_SETTINGS}).context().config

    assert config.context.model_dump(include={"ancestor_depth", "include_readme", "readme_as_fallback"}) == {
        "ancestor_depth": 3,
        "include_readme": False,
        "readme_as_fallback": True,
    }


# ---- subagents ---------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S-01", "S-02")
@pytest.mark.parametrize("given_prompt", [None, "Given by hand."])
def test_an_agent_made_as_specified_reads_the_context_of_its_own_directory(
    make_nexus: MakeNexus, tmp_path: Path, given_prompt: str | None
) -> None:
    make_nexus(files={"server/NEXUS.md": "Of the server.", "agent/NEXUS.md": "Of the agent."})
    agent = SimpleNamespace(system_prompt=given_prompt, cwd=tmp_path / "work/agent")

    prompt = run(AGENT, agent_config=agent, ContextLoader=ContextLoader)["system_prompt"]

    assert prompt == (given_prompt or ContextLoader(tmp_path / "work/agent").load().system_prompt)
    assert "Of the server." not in prompt


def specified(cwd: Path, parent: LoadedContext) -> str:
    """What the specified function makes of a parent, with the subagent's own directory in the environment."""
    prompt: str = run(SUBAGENT)["load_subagent_context"](cwd, parent)
    return prompt.replace(f"\nWorking directory: {parent.cwd}\n", f"\nWorking directory: {cwd}\n")


@pytest.mark.acceptance("S-03", "S-04", "S-05", "C-08")
@pytest.mark.parametrize("place", ["p/with", "p/without", "q/deep/with"])
def test_a_subagent_has_the_specified_prompt_with_its_own_environment(
    make_nexus: MakeNexus, tmp_path: Path, place: str
) -> None:
    files = {
        "p/.nexus3/NEXUS.md": "Of p.",
        "p/with/.nexus3/NEXUS.md": "Of its own.",
        "p/without/x": "",
        "q/.nexus3/NEXUS.md": "Of q.",
        "q/deep/with/.nexus3/NEXUS.md": "Of its own.",
    }
    parent = make_nexus(files=files, cwd="p").context()
    cwd = tmp_path / "work" / place

    assert parent.for_subagent(cwd).system_prompt == specified(cwd, parent)


@pytest.mark.acceptance("S-03", "C-08")
def test_a_source_is_found_again_where_the_specified_comparison_would_miss_it(make_nexus: MakeNexus) -> None:
    parent = make_nexus(files={".nexus3/NEXUS.md": "Of the parent."}).context()

    child = parent.for_subagent(parent.cwd)

    assert child.system_prompt == parent.system_prompt
    # A path is never equal to a source, which is a path with the name of a layer.
    assert specified(parent.cwd, parent).count("Of the parent.") == 2


# ---- prompts -----------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that one works in, with a personal prompt at home and one of its own."""
    monkeypatch.setenv("HOME", str(nexus_home.parent))
    monkeypatch.delenv("NEXUS_HOME")
    write_files(nexus_home, {"NEXUS.md": "Personal.\n"})
    work = write_files(tmp_path / "work", {"NEXUS.md": "Of the project.\n"})
    monkeypatch.chdir(work)
    return work


@pytest.mark.acceptance("E-03", "E-06")
def test_custom_sources_are_used_as_specified(
    project: Path, nexus_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(CUSTOM_SOURCES)["result"]

    assert capsys.readouterr().out.splitlines() == [
        f"Personal from: {nexus_home}/NEXUS.md",
        f"Project from: {project}/NEXUS.md",
    ]
    assert result.content.startswith(
        "# Personal Configuration\nPersonal.\n\n# Project Configuration\nOf the project.\n\n# Environment\n"
        f"Working directory: {project}\nOperating system: "
    )


@pytest.mark.acceptance("E-04", "P-07", "P-08")
@pytest.mark.usefixtures("project")
def test_a_server_loads_its_prompt_as_specified() -> None:
    lines = run(SERVER_MODE, PromptLoader=nexus_core.context.PromptLoader)["result"].content.splitlines()

    assert lines[-1] == "Mode: HTTP JSON-RPC Server"
    assert not any(line.startswith("Terminal:") for line in lines)


@pytest.mark.acceptance("E-03")
def test_a_prompt_is_reloaded_as_specified(project: Path) -> None:
    loader = nexus_core.context.PromptLoader
    before = run(RELOADING, PromptLoader=loader)["fresh_prompt"]

    write_files(project, {"NEXUS.md": "Changed."})

    assert ("Changed." in before, "Changed." in run(RELOADING, PromptLoader=loader)["fresh_prompt"]) == (False, True)
