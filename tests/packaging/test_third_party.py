"""Plugins of strangers are found because they are installed, and for no other reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.packaging.conftest import Environment, MakeEnvironment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def git_status_project(hello: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `nexus plugin new` writes."""
    into = tmp_path_factory.mktemp("scaffold")
    finished = hello.nexus("plugin", "new", "git-status", cwd=into)
    assert finished.returncode == 0, finished.stderr
    return into / "nexus-git-status"


@pytest.fixture(scope="session")
def git_status(make_environment: MakeEnvironment, core_wheel: Path, git_status_project: Path) -> Environment:
    """Nexus and the plugin that it wrote itself."""
    return make_environment(core_wheel, f"{git_status_project}[test]")


@pytest.mark.acceptance("A-03")
def test_the_section_of_an_installed_plugin_is_in_the_prompt(hello: Environment) -> None:
    prompt = hello.prompt()

    assert "## Hello\nHello, work!\n" in prompt


@pytest.mark.acceptance("A-03")
def test_an_installed_plugin_is_listed_with_name_version_hooks_and_origin(hello: Environment) -> None:
    row = hello.plugins()["hello"]

    assert row == {
        "name": "hello",
        "distribution": "nexus-hello",
        "version": "0.1.0",
        "bundled": False,
        "status": "active",
        "hooks": ["nexus_commands", "nexus_static_sections"],
        "error": None,
        "replaces": [],
    }


@pytest.mark.acceptance("A-03")
def test_the_command_of_an_installed_plugin_runs(hello: Environment) -> None:
    finished = hello.nexus("hello")

    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "Hello, work!\n", "")


def test_the_command_of_an_installed_plugin_prints_json(hello: Environment) -> None:
    finished = hello.nexus("hello", "--json")

    assert json.loads(finished.stdout) == {"schema": 1, "greeting": "Hello, work!"}


def test_the_example_plugin_passes_its_own_tests(hello: Environment, hello_project: Path) -> None:
    finished = hello.run("python", "-m", "pytest", cwd=hello_project)

    assert finished.returncode == 0, finished.stdout


@pytest.mark.acceptance("A-02")
def test_bundled_plugins_are_those_of_the_entry_points_and_active(
    hello: Environment, bundled_statuses: dict[str, str]
) -> None:
    rows = hello.plugins().values()

    assert {row["name"]: row["status"] for row in rows if row["bundled"]} == bundled_statuses


@pytest.mark.parametrize("script", ["nexus", "nexusctx"])
def test_the_command_is_installed_under_both_its_names(hello: Environment, script: str) -> None:
    finished = hello.run(script, "--version")

    assert finished.stdout.startswith("nexus ")


def test_the_package_runs_as_a_module(hello: Environment) -> None:
    finished = hello.run("python", "-m", "nexus_core", "--version")

    assert finished.stdout == hello.nexus("--version").stdout


@pytest.mark.acceptance("A-03")
def test_the_section_of_a_scaffolded_plugin_is_in_the_prompt(git_status: Environment) -> None:
    prompt = git_status.prompt()

    assert "## Git Status\nThis directory is called work.\n" in prompt


@pytest.mark.acceptance("A-03")
def test_a_scaffolded_plugin_is_listed(git_status: Environment) -> None:
    row = git_status.plugins()["git_status"]

    assert (row["distribution"], row["bundled"], row["status"]) == ("nexus-git-status", False, "active")


def test_a_scaffolded_plugin_keeps_the_contract(git_status: Environment) -> None:
    finished = git_status.nexus("plugin", "test", "git_status")

    assert (finished.returncode, finished.stdout) == (0, "git_status: ok\n")


def test_a_scaffolded_plugin_passes_its_own_tests(git_status: Environment, git_status_project: Path) -> None:
    finished = git_status.run("python", "-m", "pytest", cwd=git_status_project)

    assert finished.returncode == 0, finished.stdout
