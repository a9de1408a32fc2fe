"""Real artefacts: wheels and virtual environments, each made once, and children that know nothing of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from nexus_core.testing import write_files

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKOUT = Path(__file__).resolve().parents[2]

# What a build does not need, and what other tests may be writing while the tree is copied.
_NOT_COPIED = shutil.ignore_patterns(".*_cache", ".git", ".hypothesis", ".venv", "__pycache__", "build", "dist")

# Settings of the session that started the tests would make children behave differently on each machine.
_NOT_INHERITED = ("NEXUS_", "PYTEST_", "PYTHON")

_EXTRACTED_PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "nexus-environment"
version = "2.0"
dependencies = ["nexusctx"]

[project.entry-points."nexus.plugins"]
environment = "nexus_plugins.environment"

[tool.hatch.build.targets.wheel]
packages = ["nexus_plugins"]
"""

Finished = subprocess.CompletedProcess[str]


def run(*command: str | Path, cwd: Path, variables: Mapping[str, str] | None = None) -> Finished:
    """Run a program to its end, without the variables that would let this session shine through."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**inherited, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def must_run(*command: str | Path, cwd: Path) -> None:
    """Run a program that makes something; its output is the message when it fails."""
    finished = run(*command, cwd=cwd)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def build_wheel(project: Path, into: Path) -> Path:
    """The wheel of a project, built by the hatchling that runs these tests."""
    must_run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", into, project, cwd=project)
    (wheel,) = into.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment, with an empty home for the programs that run in it.

    Attributes:
        root: Where it lies; `work` beside it is an empty directory to run in.
        wheelhouse: The wheels of every dependency, so that an installation asks the package index for nothing.
    """

    root: Path
    wheelhouse: Path

    @property
    def work(self) -> Path:
        return self.root.parent / "work"

    @property
    def scripts(self) -> Path:
        return self._path("scripts")

    @property
    def site_packages(self) -> Path:
        return self._path("purelib")

    def _path(self, name: str) -> Path:
        base = str(self.root)
        return Path(sysconfig.get_path(name, "venv", {"base": base, "platbase": base}))

    def install(self, *requirements: str | Path) -> None:
        """Install as a user would, with pip."""
        # Its own copy of pip would take longer to unpack than everything else.
        pip = (sys.executable, "-m", "pip", "--python", self.scripts / "python")
        offline = ("--no-index", "--find-links", self.wheelhouse)
        must_run(*pip, "install", "--quiet", *offline, *requirements, cwd=self.root)

    def run(self, program: str, *arguments: str | Path, cwd: Path | None = None, **variables: str) -> Finished:
        """Run a program of this environment, in an empty directory unless told otherwise."""
        home = str(self.root.parent / "home")
        where = {"HOME": home, "USERPROFILE": home}
        return run(self.scripts / program, *arguments, cwd=cwd or self.work, variables={**where, **variables})

    def nexus(self, *arguments: str, cwd: Path | None = None, **variables: str) -> Finished:
        """Run `nexus`."""
        return self.run("nexus", *arguments, cwd=cwd, **variables)

    def prompt(self) -> str:
        """What `nexus show` prints."""
        return self._output("show")

    def plugins(self) -> dict[str, dict[str, Any]]:
        """The rows of `nexus plugin list --json` by name."""
        return {row["name"]: row for row in json.loads(self._output("plugin", "list", "--json"))["plugins"]}

    def _output(self, *arguments: str) -> str:
        finished = self.nexus(*arguments)
        assert (finished.returncode, finished.stderr) == (0, "")
        return finished.stdout


class MakeEnvironment(Protocol):
    def __call__(self, *requirements: str | Path) -> Environment: ...


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The tree these tests belong to; nothing is written into it."""
    return CHECKOUT


@pytest.fixture(scope="session")
def bundled_names(checkout: Path) -> set[str]:
    """The plugins that ship with Nexus, according to the project's entry points."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["entry-points"]["nexus.plugins"])


@pytest.fixture(scope="session")
def bundled_statuses(bundled_names: set[str]) -> dict[str, str]:
    """What becomes of each of them where no extra is installed."""
    return {**dict.fromkeys(bundled_names, "active"), "telemetry": "needs-extra"}


@pytest.fixture(scope="session")
def core_wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(checkout, tmp_path_factory.mktemp("core_wheel"))


@pytest.fixture(scope="session")
def sdist_wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the sdist, which is what `build` does unless it is asked for one of the two."""
    into = tmp_path_factory.mktemp("sdist_wheel")
    must_run(sys.executable, "-m", "build", "--no-isolation", "--outdir", into, checkout, cwd=checkout)
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def make_environment(core_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeEnvironment:
    """Make a fresh virtual environment in which the requirements are installed."""
    wheelhouse = tmp_path_factory.mktemp("wheelhouse")
    # The only time the package index is asked; hatchling wants editables for an installation in place.
    pip_wheel = (sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", wheelhouse)
    must_run(*pip_wheel, core_wheel, "editables", "hatchling", "pytest", "openai", cwd=wheelhouse)

    def make(*requirements: str | Path) -> Environment:
        directory = tmp_path_factory.mktemp("environment")
        for name in ("home", "work"):
            (directory / name).mkdir()
        environment = Environment(directory / "venv", wheelhouse)
        must_run(sys.executable, "-m", "venv", "--without-pip", environment.root, cwd=directory)
        environment.install(*requirements)
        return environment

    return make


@pytest.fixture(scope="session")
def hello_project(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example plugin, as a newcomer would make one."""
    return shutil.copytree(
        checkout / "examples/hello-plugin", tmp_path_factory.mktemp("hello") / "hello-plugin", ignore=_NOT_COPIED
    )


@pytest.fixture(scope="session")
def hello(make_environment: MakeEnvironment, core_wheel: Path, hello_project: Path) -> Environment:
    """Nexus and the example plugin."""
    return make_environment(core_wheel, f"{hello_project}[test]")


@pytest.fixture(scope="session")
def copied_checkout(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree, to be installed in place."""
    return shutil.copytree(checkout, tmp_path_factory.mktemp("copied") / "nexus", ignore=_NOT_COPIED)


@pytest.fixture(scope="session")
def core_without_environment(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as if the `environment` plugin had never been part of it."""
    tree = shutil.copytree(checkout, tmp_path_factory.mktemp("reduced") / "nexus", ignore=_NOT_COPIED)
    shutil.rmtree(tree / "plugins/nexus_plugins/environment")
    project = tree / "pyproject.toml"
    entry_point = 'environment = "nexus_plugins.environment"\n'
    before = project.read_text(encoding="utf-8")
    assert before.count(entry_point) == 1
    project.write_text(before.replace(entry_point, ""), encoding="utf-8")
    must_run(sys.executable, tree / "scripts/generate.py", cwd=tree)
    return tree


@pytest.fixture(scope="session")
def environment_wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `environment` plugin as a distribution of its own, its code unchanged."""
    project = write_files(tmp_path_factory.mktemp("extracted"), {"pyproject.toml": _EXTRACTED_PROJECT})
    package = "nexus_plugins/environment"
    shutil.copytree(checkout / "plugins" / package, project / package, ignore=_NOT_COPIED)
    return build_wheel(project, tmp_path_factory.mktemp("environment_wheel"))
