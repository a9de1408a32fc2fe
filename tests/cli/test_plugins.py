import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nexus_core.host.calls import get_hooks
from nexus_core.testing import write_files
from tests.conftest import Cli, InstallPlugin

FINE = """
from nexus_core import Section, hookimpl

@hookimpl
def nexus_static_sections():
    return [Section("git", title="Git", text="clean")]
"""

COUNTER = """
from nexus_core import hookimpl

class Counter:
    name = "acme"
    exact = True

    def count(self, text):
        return len(text)

@hookimpl
def nexus_token_counter(model):
    return Counter() if len(model) == 77 else None
"""


@pytest.mark.acceptance("A-03")
def test_the_list_has_a_row_for_every_plugin(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("git", FINE, version="2.1")

    rows = [line.split() for line in cli("plugin", "list").out.splitlines()]

    assert rows[1][:5] == ["bedrock", "active", "nexusctx", "0.1.0", "(bundled)"]
    assert rows[-1] == ["git", "active", "nexus-git", "2.1", "nexus_static_sections"]


@pytest.mark.acceptance("A-03")
def test_the_list_as_json(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("git", FINE, version="2.1")
    install_plugin("bad", "raise ImportError('boom')")

    document = json.loads(cli("plugin", "list", "--json").out)

    assert document["schema"] == 1
    assert [plugin["name"] for plugin in document["plugins"] if not plugin["bundled"]] == ["bad", "git"]
    assert document["plugins"][-2:] == [
        {
            "name": "bad",
            "distribution": "nexus-bad",
            "version": "1.0",
            "bundled": False,
            "status": "failed",
            "hooks": [],
            "error": "it raised ImportError: boom while it was loaded",
            "replaces": [],
        },
        {
            "name": "git",
            "distribution": "nexus-git",
            "version": "2.1",
            "bundled": False,
            "status": "active",
            "hooks": ["nexus_static_sections"],
            "error": None,
            "replaces": [],
        },
    ]


def test_a_strict_run_still_lists_the_broken_plugin(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin("bad", "raise ImportError('boom')")
    monkeypatch.setenv("NEXUS_STRICT", "1")

    outcome = cli("plugin", "list")

    assert outcome.code == 3
    assert "bad" in outcome.out


def test_one_plugin_in_detail(cli: Cli) -> None:
    outcome = cli("plugin", "info", "environment")

    assert "nexusctx 0.1.0 (bundled)" in outcome.out
    assert "nexus_static_sections(request, loaded): Contribute sections" in outcome.out


def test_a_broken_plugin_in_detail_says_why(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    assert "raised ImportError: boom" in cli("plugin", "info", "bad").out
    assert json.loads(cli("plugin", "info", "bad", "--json").out)["plugin"]["status"] == "failed"


@pytest.mark.parametrize("name", ["my-thing", "my_thing"])
def test_a_plugin_is_found_with_hyphens_and_with_underscores(
    cli: Cli, install_plugin: InstallPlugin, name: str
) -> None:
    install_plugin("my_thing", FINE)

    assert "my_thing" in cli("plugin", "info", name).out
    assert cli("plugin", "test", name).out == "my_thing: ok\n"


@pytest.mark.parametrize(
    ("hook", "command"),
    [("nexus_static_sections", "nexus show"), ("nexus_token_counter", "nexus plugin test my_thing")],
)
def test_a_new_plugin_names_the_command_that_shows_its_hook_at_work(cli: Cli, hook: str, command: str) -> None:
    assert cli("plugin", "new", "my-thing", "--hook", hook).err.endswith(f"&& {command}\n")


def test_an_unknown_plugin_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("plugin", "info", "enviroment")

    assert outcome.code == 2
    assert "did you mean 'environment'?" in outcome.err


def test_the_contract_lists_every_hook_in_order(cli: Cli) -> None:
    lines = cli("plugin", "hooks").out.splitlines()

    assert [line.partition("(")[0] for line in lines[1:]] == list(get_hooks())


@pytest.mark.parametrize(
    ("hook", "kind"),
    [("nexus_layers", "collects"), ("nexus_ledger", "first answer wins"), ("nexus_step_recorded", "announces")],
)
def test_the_contract_says_how_answers_are_used(cli: Cli, hook: str, kind: str) -> None:
    (line,) = (line for line in cli("plugin", "hooks").out.splitlines() if line.startswith(f"{hook}("))

    assert f")  {kind}  " in re.sub(" {2,}", "  ", line)


def test_the_reference_of_one_hook_is_its_docstring(cli: Cli) -> None:
    out = cli("plugin", "hooks", "nexus_layers").out

    declaration = "nexus_layers(request: Request) -> Iterable[Layer | SkippedFile]"
    assert out == f"{declaration}\n\n{get_hooks()['nexus_layers'].reference}\n"


def test_the_contract_as_json(cli: Cli) -> None:
    document = json.loads(cli("plugin", "hooks", "nexus_layers", "--json").out)

    assert (document["schema"], document["hooks"][0]["parameters"]) == (1, ["request"])
    assert document["hooks"][0]["kind"] == "collects"


@pytest.mark.parametrize("arguments", [[], ["nexus_layers"], ["--json"]], ids=" ".join)
def test_without_docstrings_the_contract_says_why_it_has_no_text(nexus_home: Path, arguments: list[str]) -> None:  # noqa: ARG001 - the home must be in place
    command = [sys.executable, "-OO", "-m", "nexus_core", "plugin", "hooks", *arguments]

    outcome = subprocess.run(command, text=True, capture_output=True, check=True)

    assert "nexus_layers" in outcome.stdout
    assert outcome.stderr.startswith("Python was started with -OO")
    assert len(outcome.stderr.splitlines()) == 1


def test_an_unknown_hook_suggests_the_nearest(cli: Cli) -> None:
    outcome = cli("plugin", "hooks", "nexus_layer")

    assert (outcome.code, "did you mean 'nexus_layers'?" in outcome.err) == (2, True)


def test_bundled_plugins_keep_the_contract(cli: Cli) -> None:
    outcome = cli("plugin", "test", "environment", "file_layers")

    assert (outcome.code, outcome.out) == (0, "environment: ok\nfile_layers: ok\n")


def test_findings_are_listed_and_counted_as_failure(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("git", FINE)
    install_plugin("sloppy", "def nexus_layers(): return []")

    outcome = cli("plugin", "test")

    assert outcome.code == 1
    assert outcome.out == ("git: ok\nsloppy:\n  - nexus_layers is not marked @hookimpl, so it is never called\n")


def test_a_counter_is_checked_with_the_model_that_is_named(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("acme", COUNTER)

    outcome = cli("plugin", "test", "acme", "--model", "a" * 77)

    assert outcome.code == 1
    assert "returned Counter, which is not a ModelCounter: it has no count_messages, count_many" in outcome.out


def test_a_plugin_that_cannot_be_imported_is_a_finding(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "import sys; sys.exit(7)")

    outcome = cli("plugin", "test", "bad", "--json")

    assert outcome.code == 1
    assert json.loads(outcome.out)["plugins"] == [
        {"name": "bad", "findings": ["it called sys.exit(7) while it was loaded"]}
    ]


def test_a_plugin_whose_name_is_taken_is_a_finding(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("environment", FINE, distribution="nexus-other")

    outcome = cli("plugin", "test")

    assert outcome.code == 1
    assert "environment (nexus-other 1.0) cannot load: the name is taken by environment (nexusctx" in outcome.out
    assert "nexusctx" in cli("plugin", "info", "environment").out


def test_checking_nothing_says_so(cli: Cli, install_plugin: InstallPlugin) -> None:  # noqa: ARG001 - allows installed plugins
    outcome = cli("plugin", "test")

    assert (outcome.code, outcome.out) == (0, "")
    assert "No plugins are installed" in outcome.err


def test_checking_an_unknown_plugin_is_an_error(cli: Cli) -> None:
    assert cli("plugin", "test", "enviroment").code == 2


@pytest.mark.acceptance("A-04")
def test_a_new_plugin_is_a_complete_package(cli: Cli, work: Path) -> None:
    outcome = cli("plugin", "new", "git-status")

    root = work / "nexus-git-status"
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert outcome.code == 0
    assert sorted(outcome.out.splitlines()) == sorted(str(path) for path in root.rglob("*") if path.is_file())
    assert project["project"]["entry-points"]["nexus.plugins"] == {"git_status": "nexus_git_status"}
    assert "@hookimpl" in (root / "nexus_git_status/__init__.py").read_text()
    assert "check_plugin" in (root / "tests/test_nexus_git_status.py").read_text()


def test_a_dry_run_lists_and_writes_nothing(cli: Cli, work: Path) -> None:
    outcome = cli("plugin", "new", "git-status", "--dry-run")

    assert "pyproject.toml" in outcome.out
    assert outcome.err == "Nothing was written.\n"
    assert list(work.iterdir()) == []


def test_a_new_plugin_goes_where_it_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()

    cli("plugin", "new", "git", "--into", str(tmp_path / "src"))

    assert (tmp_path / "src/nexus-git/pyproject.toml").is_file()


def test_an_existing_directory_is_not_touched(cli: Cli, work: Path) -> None:
    (work / "nexus-git").mkdir()

    outcome = cli("plugin", "new", "git")

    assert (outcome.code, list((work / "nexus-git").iterdir())) == (3, [])
    assert "already exists" in outcome.err


@pytest.mark.parametrize(
    ("options", "words"),
    [([], "already exists"), (["--into", "nowhere"], "no such directory"), (["--into", "file"], "not a directory")],
)
def test_a_dry_run_fails_as_the_real_one_would(cli: Cli, work: Path, options: list[str], words: str) -> None:
    write_files(work, {"nexus-git/README.md": "mine", "file": ""})

    dry, real = cli("plugin", "new", "git", *options, "--dry-run"), cli("plugin", "new", "git", *options)

    assert dry == real
    assert (dry.code, dry.out) == (3, "")
    assert words in dry.err


@pytest.mark.parametrize("name", ["core", "plugins", "environment", "file-layers"])
def test_a_name_that_would_replace_a_part_of_nexus_is_refused(cli: Cli, work: Path, name: str) -> None:
    outcome = cli("plugin", "new", name)

    assert (outcome.code, list(work.iterdir())) == (2, [])
    assert "is taken" in outcome.err


@pytest.mark.parametrize("name", ["Git", "git_status", "../git", "git-", "7up", "git status", "", "gît"])
def test_a_name_that_cannot_be_a_package_is_refused(cli: Cli, work: Path, name: str) -> None:
    outcome = cli("plugin", "new", name)

    assert outcome.code == 2
    assert "git-status" in outcome.err
    assert list(work.iterdir()) == []
