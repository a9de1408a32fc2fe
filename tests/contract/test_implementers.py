"""Every hook has an answer that ships with Nexus and a different one, by a plugin that is installed beside it."""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from nexus_core import ConfigError, Nexus
from nexus_core.host.bundled import BUNDLED
from nexus_core.testing import check_plugin, write_files
from tests.conftest import Cli, InstallPlugin
from tests.session.support import TOOLS, calls, says

HOOKS = (
    "nexus_commands",
    "nexus_init_files",
    "nexus_settings",
    "nexus_merge_policies",
    "nexus_layers",
    "nexus_layer_config",
    "nexus_layer_texts",
    "nexus_static_sections",
    "nexus_current_sections",
    "nexus_tools",
    "nexus_renderers",
    "nexus_roles",
    "nexus_call_assembled",
    "nexus_step_recorded",
    "nexus_diagnose",
)
PACKAGE = Path(__file__).with_name("acme_policy")
METADATA = {
    "acme_policy-2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-policy\nVersion: 2.0\n",
    "acme_policy-2.0.dist-info/entry_points.txt": "[nexus.plugins]\npolicy = acme_policy\n",
}


@pytest.fixture(autouse=True)
def installed(install_plugin: InstallPlugin, tmp_path: Path) -> None:  # noqa: ARG001 - it makes the place to install in
    """The plugin as pip would install it."""
    site = write_files(tmp_path / "site-packages", METADATA)
    shutil.copytree(PACKAGE, site / "acme_policy", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def company(nexus_home: Path) -> Path:
    """The place where the company keeps its rules."""
    return write_files(
        nexus_home.parent / "policy",
        {"POLICY.md": "No force pushes.\n", "policy.toml": '[plugins.policy]\nteams = ["core", "web"]\n'},
    )


@pytest.mark.acceptance("A-01")
@pytest.mark.parametrize("hook", HOOKS)
def test_a_bundled_plugin_and_an_installed_one_answer(cli: Cli, hook: str) -> None:
    plugins = json.loads(cli("plugin", "list", "--json").out)["plugins"]

    answering = {plugin["name"] for plugin in plugins if hook in plugin["hooks"] and plugin["status"] == "active"}
    assert "policy" in answering
    assert bool(answering & {candidate.name for candidate in BUNDLED})


@pytest.mark.acceptance("A-03")
def test_the_installed_plugin_is_listed_with_version_and_origin(cli: Cli) -> None:
    plugins = json.loads(cli("plugin", "list", "--json").out)["plugins"]

    (row,) = (plugin for plugin in plugins if plugin["name"] == "policy")
    assert (row["distribution"], row["version"], row["bundled"]) == ("acme-policy", "2.0", False)
    assert tuple(row["hooks"]) == HOOKS


def test_the_installed_plugin_keeps_the_contract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    import acme_policy  # type: ignore[import-not-found]

    assert check_plugin(acme_policy) == []


@pytest.mark.usefixtures("company")
def test_its_command_runs_beside_those_of_others(cli: Cli) -> None:
    assert cli("policy").out == "['core', 'web']\n"
    assert cli("environment").code == 0


def test_its_file_is_written_beside_those_of_others(cli: Cli, work: Path) -> None:
    assert cli("init").code == 0

    assert sorted(path.name for path in (work / ".nexus3").iterdir()) == [
        "NEXUS.md",
        "POLICY.md",
        "config.json",
        "mcp.json",
    ]
    assert "Ask before you push." in cli("show").out


def test_its_settings_are_checked_by_its_own_schema(work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"plugins": {"policy": {"temas": ["core"]}}}'})

    with Nexus(work) as nexus, pytest.raises(ConfigError, match="did you mean 'teams'"):
        nexus.load()


@pytest.mark.acceptance("T1")
def test_what_it_calls_active_waits_for_approval(cli: Cli, work: Path) -> None:
    settings = {"plugins": {"policy": {"endpoint": "https://acme.example", "teams": ["here"]}}}
    write_files(work, {".nexus3/config.json": json.dumps(settings)})

    before = cli("config", "get", "plugins.policy").out
    assert cli("trust", "allow", "--all", "--yes").code == 0
    after = cli("config", "get", "plugins.policy").out

    assert json.loads(before) == {"teams": ["here"]}
    assert json.loads(after) == settings["plugins"]["policy"]


@pytest.mark.acceptance("C-01")
@pytest.mark.usefixtures("company")
def test_its_policy_decides_how_its_list_is_merged(work: Path) -> None:
    settings = '{"plugins": {"policy": {"teams": ["web", "local"]}}, "skills": {"disabled": ["a", "a"]}}'
    write_files(work, {".nexus3/config.json": settings})

    with Nexus(work) as nexus:
        merged = nexus.load().settings

    assert merged.get("plugins.policy.teams") == ["core", "web", "local"]
    assert merged.get("skills.disabled") == ["a", "a"]


@pytest.mark.acceptance("A-01")
def test_its_layer_its_settings_and_its_text_are_found_and_sorted_among_the_others(
    work: Path, nexus_home: Path, company: Path
) -> None:
    write_files(nexus_home, {"NEXUS.md": "Own."})
    write_files(work, {"NEXUS.md": "Here."})

    with Nexus(work, defaults=False) as nexus:
        context = nexus.context()

    assert [layer.name for layer in context.loaded.layers] == ["global", "global:policy", "local"]
    assert company / "policy.toml" in context.sources.config_sources
    assert context.sources.global_dir == nexus_home
    assert f"## Company Policy\nSource: {company}/POLICY.md\n\nNo force pushes.\n" in context.system_prompt
    titles = [section.title for section in context.sections]
    assert titles[:3] == ["Global Configuration", "Project Configuration", "Company Policy"]
    assert titles[3:] == ["Teams", "Environment", "Active Configuration"]


def test_a_place_that_it_looked_at_in_vain_is_listed(cli: Cli, nexus_home: Path) -> None:
    document = json.loads(cli("layers", "--json").out)

    place = str(nexus_home.parent / "policy")
    assert [row["reason"] for row in document["skipped"] if row["path"] == place] == ["no policy here"]


def test_its_finding_is_among_those_of_the_doctor(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "Rules.", "CLAUDE.md": "Other rules."})

    document = json.loads(cli("doctor", "--json").out)

    codes = [finding["code"] for finding in document["findings"]]
    assert ("no-policy" in codes, "passed-over" in codes) == (True, True)


@pytest.mark.acceptance("A-01", "N-04")
def test_its_section_is_part_of_what_is_said(work: Path) -> None:
    with Nexus(work, ledger="memory:") as nexus:
        session = nexus.session("audit", role="auditor")
        context = session.ask("May I?", source="Ada", platform="phone")

    assert context.current_message is not None
    assert "## Service Desk\nAda asks through phone\n" in context.current_message.content
    assert "Platform: phone" in context.current_message.content


@pytest.mark.acceptance("G-02")
def test_its_tool_is_offered_with_its_origin(work: Path) -> None:
    with Nexus(work) as nexus:
        context = nexus.assemble(nexus.request(role="auditor"))

    assert [tool.name for tool in context.tools] == ["ask_legal"]
    (placed,) = (placement for placement in context.placements if placement.kind == "tool")
    assert placed.source.plugin == "policy"


def test_its_renderer_puts_everything_into_its_own_words(work: Path) -> None:
    write_files(work, {"NEXUS.md": "Here."})

    with Nexus(work, ledger="memory:", defaults=False) as nexus:
        context = nexus.session("memo", renderer="memo").ask("Hello", source="Ada", platform="phone")

    assert context.system_prompt.startswith("MEMO\nHere.")
    assert context.current_message is not None
    assert context.current_message.content == "Ada asks through phone\nHello"


@pytest.mark.acceptance("A-01")
def test_it_counts_what_each_session_costs(work: Path) -> None:
    with Nexus(work, ledger="memory:") as nexus:
        session = nexus.session("costly", model="claude-sonnet-4", tools=TOOLS)
        session.ask("Why?")
        step = session.record(calls("t1"))
        session.record(step.tool_calls[0].result("here"))
        session.next()
        session.record(says("Because.", name="msg_2"))
        session.preview("And?")
        spent = session.usage

    assert import_module("acme_policy").COSTS["costly"] == {"calls": 2, "tokens": spent.total_tokens}
