"""New packages for every hook keep the contract and pass their own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from nexus_core.cli.commands.scaffold import HOOK_TEMPLATES, build_plugin_package
from nexus_core.host.calls import get_hooks
from nexus_core.host.loader import find_implementations
from nexus_core.testing import check_plugin, write_files
from tests.conftest import Cli


def plugin_name(hook: str) -> str:
    return f"sample-{hook.removeprefix('nexus_').replace('_', '-')}"


def test_there_is_a_sample_of_every_hook() -> None:
    assert list(HOOK_TEMPLATES) == list(get_hooks())


@pytest.mark.parametrize("hook", get_hooks())
def test_a_new_plugin_implements_its_hook_and_keeps_the_contract(
    hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = build_plugin_package(plugin_name(hook), hook)
    monkeypatch.syspath_prepend(write_files(tmp_path, package.files))

    plugin = import_module(package.distribution.replace("-", "_"))

    needed = ["nexus_tools"] if hook == "nexus_toolsets" else []  # what runs a tool must offer it
    assert list(find_implementations(plugin)) == [*needed, hook]
    assert check_plugin(plugin) == []


@pytest.mark.slow
def test_the_tests_of_new_plugins_pass(tmp_path: Path) -> None:
    roots = [
        write_files(tmp_path / package.distribution, package.files)
        for package in (build_plugin_package(plugin_name(hook), hook) for hook in get_hooks())
    ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        *map(str, roots),
    ]
    paths = os.pathsep.join(map(str, roots))

    outcome = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, text=True, capture_output=True, check=False
    )

    assert outcome.returncode == 0, outcome.stdout
    assert f"{2 * len(get_hooks())} passed" in outcome.stdout


def test_the_hook_is_named_on_the_command_line(cli: Cli, work: Path) -> None:
    outcome = cli("plugin", "new", "acme", "--hook", "nexus_token_counter")

    assert outcome.code == 0
    assert "def nexus_token_counter(model" in (work / "nexus-acme/nexus_acme/__init__.py").read_text()
    assert 'nexus_token_counter("acme-large")' in (work / "nexus-acme/tests/test_nexus_acme.py").read_text()


def test_an_unknown_hook_suggests_the_nearest_and_writes_nothing(cli: Cli, work: Path) -> None:
    outcome = cli("plugin", "new", "acme", "--hook", "nexus_token_counters")

    assert (outcome.code, list(work.iterdir())) == (2, [])
    assert "did you mean 'nexus_token_counter'?" in outcome.err
