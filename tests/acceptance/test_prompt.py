"""The labelled prompt and where its parts come from: the rows P of the specification, through a whole load."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from nexus_core.context import ContextLoader, LoadedContext, LoadedSource, PromptSource
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import Cli
from tests.trees import SPECIFICATION

GOLDEN = Path(__file__).parents[1] / "golden"
SPECIFIED = "84314484ef921296d2aa5d3bcb985ecd99e01583dd8e590259e47f2e12c181f3"
"""The digest of the prompt in the specification, with which the expected one was compared."""


# ---- the example of the specification, byte for byte -------------------------------------------------------


@pytest.fixture
def example(tmp_path: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tree of the example, under another root; gives the directory of the project."""
    monkeypatch.setenv("NEXUS_HOME", str(tmp_path / ".nexus3"))
    monkeypatch.setenv("TERM_PROGRAM", "vscode")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("nexus_plugins.environment.get_operating_system", lambda: "Linux (WSL2 on Windows)")
    nexus_home.rmdir()
    write_files(tmp_path / ".nexus3", SPECIFICATION.home)
    write_files(tmp_path / "projects", SPECIFICATION.files)
    return tmp_path / "projects" / SPECIFICATION.cwd


@pytest.mark.acceptance("P-01", "P-02", "P-03", "P-04", "P-05", "P-06", "P-10", "P-11", "C-06", "C-07")
def test_the_example_of_the_specification_byte_for_byte(example: Path, tmp_path: Path, cli: Cli) -> None:
    assert cli("-C", str(example), "trust", "allow", "--all", "--yes").code == 0

    context = ContextLoader(example).load()

    expected = (GOLDEN / "specification.md").read_text(encoding="utf-8")
    assert context.system_prompt.replace(str(tmp_path), "/home/user") == expected
    assert cli("-C", str(example), "show", "--loaded").out.replace(str(tmp_path), "/home/user") == expected


@pytest.mark.acceptance("C-07")
def test_servers_are_bullets_if_the_settings_say_so(make_nexus: MakeNexus) -> None:
    servers = {
        "filesystem": {"command": "npx", "args": ["fs"]},
        "database": {"url": "http://localhost:5432/?api_key=sk-abcdefghijklmnopqrstuv0123456789"},
    }
    nexus = make_nexus(
        {
            ".nexus3/config.json": '{"plugins": {"mcp": {"form": "bullets"}}}',
            ".nexus3/mcp.json": json.dumps({"mcpServers": servers}),
        }
    )

    prompt = nexus.system_prompt()

    section = prompt.partition("## Active MCP Servers\n")[2]
    assert section.startswith(
        "- filesystem (project): stdio, not approved\n- database (project): http://localhost:5432/"
    )
    assert "sk-abcdef" not in prompt
    assert "| Server |" not in prompt


@pytest.mark.acceptance("P-11", "M-07")
def test_until_they_are_approved_servers_of_a_project_are_shown_as_not_approved(example: Path, tmp_path: Path) -> None:
    prompt = ContextLoader(example).load().system_prompt.replace(str(tmp_path), "/home/user")

    expected = (GOLDEN / "specification.md").read_text(encoding="utf-8")
    for row in ("| postgres | http | ancestor:company |", "| auth-tools | stdio | local |"):
        expected = expected.replace(f"{row} enabled |", f"{row} not approved |")
    assert prompt == expected


def test_the_expected_prompt_is_that_of_the_specification() -> None:
    assert sha256((GOLDEN / "specification.md").read_bytes()).hexdigest() == SPECIFIED


# ---- its parts ---------------------------------------------------------------------------------------------


def headings(context: LoadedContext) -> list[str]:
    return [line for line in context.system_prompt.splitlines() if line.startswith(("# ", "## "))]


PARTS = {
    "home": "## Global Configuration",
    "work/a/.nexus3": "## Ancestor Configuration (a)",
    "work/a/b/.nexus3": "## Ancestor Configuration (b)",
    "work/a/b/c/.nexus3": "## Project Configuration",
}


@pytest.mark.acceptance("P-12", "P-05")
@pytest.mark.parametrize("present", range(16), ids="{:04b}".format)
def test_what_is_not_there_leaves_no_heading_and_the_order_stays(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, present: int
) -> None:
    chosen = [place for number, place in enumerate(PARTS) if present & 1 << number]
    for place in chosen:
        write_files(nexus_home if place == "home" else tmp_path / place, {"NEXUS.md": f"Of {place}."})

    context = make_nexus(cwd="a/b/c").context()

    rest = ["## Environment", "## Active Configuration"]
    assert headings(context) == ["# System Configuration", *(PARTS[place] for place in chosen), *rest]


@pytest.mark.acceptance("P-02", "P-03", "P-04", "C-06")
def test_every_text_stands_under_its_heading_and_absolute_path(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path
) -> None:
    write_files(nexus_home, {"NEXUS.md": "Own.\n"})
    context = make_nexus(files={"a/.nexus3/NEXUS.md": "A\n", "a/b/.nexus3/NEXUS.md": "\nB\n\n"}, cwd="a/b").context()

    work = tmp_path / "work"
    assert context.system_prompt.startswith(
        "# System Configuration\n\n"
        f"## Global Configuration\nSource: {nexus_home}/NEXUS.md\n\nOwn.\n\n"
        f"## Ancestor Configuration (a)\nSource: {work}/a/.nexus3/NEXUS.md\n\nA\n\n"
        f"## Project Configuration\nSource: {work}/a/b/.nexus3/NEXUS.md\n\nB\n\n"
        "## Environment\n"
    )


@pytest.mark.acceptance("C-06")
def test_a_path_below_the_home_directory_can_be_abbreviated(make_nexus: MakeNexus, tmp_path: Path) -> None:
    files = {"a/NEXUS.md": "A", "a/b/NEXUS.md": "B", "c/NEXUS.md": "C"}
    work = tmp_path / "work"

    child = make_nexus(files=files, cwd="a/b").context().for_subagent(work / "c")

    sources = [line for line in child.render(home=work / "a").splitlines() if line.startswith("Source: ")]
    assert sources == [f"Source: {work}/c/NEXUS.md", "Source: ~/NEXUS.md", "Source: ~/b/NEXUS.md"]
    assert child.render() == child.system_prompt
    assert "~" not in child.system_prompt


@pytest.mark.acceptance("P-10", "C-27")
@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({}, ["Permission level: trusted"]),
        (
            {"provider": {"model": "m", "context_window": 5}, "permissions": {"level": "sandboxed"}},
            ["Model: m", "Context window: 5 tokens", "Permission level: sandboxed"],
        ),
        (
            {"provider": {"model": "anthropic/claude-sonnet-4"}},
            ["Model: anthropic/claude-sonnet-4", "Context window: 200000 tokens", "Permission level: trusted"],
        ),
        (
            {"provider": {"model": "house-blend"}, "models": {"house-*": {"window": 9}}},
            ["Model: house-blend", "Context window: 9 tokens", "Permission level: trusted"],
        ),
        ({"provider": {"model": "nobody-knows-it"}}, ["Model: nobody-knows-it", "Permission level: trusted"]),
    ],
)
def test_the_active_configuration_is_what_the_layers_set_and_what_is_known_of_the_model(
    make_nexus: MakeNexus, nexus_home: Path, settings: dict[str, object], lines: list[str]
) -> None:
    write_files(nexus_home, {"config.json": json.dumps(settings)})

    prompt = make_nexus().context().system_prompt

    assert prompt.endswith("\n\n## Active Configuration\n" + "\n".join(lines) + "\n")


@pytest.mark.acceptance("P-13", "C-30")
def test_a_source_of_the_prompt_is_a_path_and_the_name_of_its_layer(make_nexus: MakeNexus, tmp_path: Path) -> None:
    context = make_nexus(files={"a/NEXUS.md": "A", "a/b/NEXUS.md": "B"}, cwd="a/b").context()

    (far, far_name), (near, near_name) = context.sources.prompt_sources

    work = tmp_path / "work"
    assert (far, far_name, near, near_name) == (work / "a/NEXUS.md", "ancestor:a", work / "a/b/NEXUS.md", "local")
    assert isinstance(context.sources.prompt_sources[0], LoadedSource)
    assert not isinstance(context.sources.prompt_sources[0], PromptSource)


@pytest.mark.acceptance("P-13")
def test_the_sources_have_the_names_and_kinds_of_the_specification(make_nexus: MakeNexus, nexus_home: Path) -> None:
    sources = make_nexus().context().sources

    assert sources._asdict() == {
        "global_dir": nexus_home,
        "ancestor_dirs": [],
        "local_dir": None,
        "prompt_sources": [],
        "config_sources": [],
        "mcp_sources": [],
    }
