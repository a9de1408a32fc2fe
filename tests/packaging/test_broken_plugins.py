"""A broken plugin is named and left out; it never takes the prompt away."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from nexus_core.testing import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.packaging.conftest import Environment, MakeEnvironment

pytestmark = pytest.mark.slow

_HOOK = """
from nexus_core import hookimpl

@hookimpl
def {signature}:
    {body}
"""


@dataclass(frozen=True)
class Broken:
    """A plugin with one defect.

    Attributes:
        defect: What is wrong with it, as the name of the case.
        source: Its module.
        said: What standard error says about it, besides its name.
        loads: Whether the defect only shows when a hook is called.
        distributions: Who installs a plugin of that name; the last one is to blame.
    """

    defect: str
    source: str
    said: str
    loads: bool = False
    distributions: tuple[str, ...] = ("nexus-culprit",)

    @property
    def label(self) -> str:
        return f"culprit ({self.distributions[-1]} 1.0)"


_HARMLESS = _HOOK.format(signature="nexus_static_sections(request)", body="return []")

_CASES = [
    Broken("raises-at-import", "raise ImportError('no libculprit')", said="raised ImportError: no libculprit"),
    Broken(
        "raises-what-cannot-be-printed",
        "class Mute(Exception):\n    def __str__(self):\n        raise OSError\nraise Mute",
        said="raised Mute while it was loaded",
    ),
    Broken("exits-at-import", "import sys\nsys.exit(7)", said="called sys.exit(7)"),
    Broken(
        "misspelt-hook",
        _HOOK.format(signature="nexus_static_section(request)", body="return []"),
        said="nexus_static_section is not a hook; did you mean 'nexus_static_sections'?",
    ),
    Broken(
        "wrong-parameter",
        _HOOK.format(signature="nexus_static_sections(reqest)", body="return []"),
        said="nexus_static_sections has a parameter 'reqest'",
    ),
    Broken(
        "taken-name",
        _HARMLESS,
        said="its name is taken by culprit (nexus-a-culprit 1.0)",
        distributions=("nexus-a-culprit", "nexus-culprit"),
    ),
    Broken(
        "raises-in-a-hook",
        _HOOK.format(signature="nexus_static_sections(request)", body="raise OSError('disk on fire')"),
        said="nexus_static_sections: its result is dropped, because it raised OSError: disk on fire",
        loads=True,
    ),
    Broken(
        "wrong-answer",
        _HOOK.format(signature="nexus_static_sections(request)", body="return ['not a section']"),
        said="nexus_static_sections: its result is dropped, because it returned a list with str in it",
        loads=True,
    ),
]


@pytest.fixture(scope="module")
def core(make_environment: MakeEnvironment, core_wheel: Path) -> Environment:
    """Nexus alone."""
    return make_environment(core_wheel)


@pytest.fixture(scope="module")
def prompt_without_culprit(core: Environment) -> str:
    return core.prompt()


@pytest.fixture(scope="module", params=_CASES, ids=lambda broken: broken.defect)
def broken(request: pytest.FixtureRequest, core: Environment, prompt_without_culprit: str) -> Iterator[Broken]:  # noqa: ARG001 - before the culprit is installed
    """A broken plugin among the installed distributions, for as long as its tests run."""
    plugin: Broken = request.param
    for distribution in plugin.distributions:
        _install(core, distribution, plugin.source)
    yield plugin
    _uninstall(core)


@pytest.fixture(params=[{"METADATA": ""}, {"entry_points.txt": "[nexus.plugins]\nculprit\n"}], ids=" ".join)
def damaged(request: pytest.FixtureRequest, core: Environment, prompt_without_culprit: str) -> Iterator[None]:  # noqa: ARG001 - as above
    """A plugin with metadata that nobody can read, as an interrupted installation leaves it behind."""
    write_files(_install(core, "nexus-culprit", _HARMLESS), request.param)
    yield
    _uninstall(core)


def _install(core: Environment, distribution: str, source: str) -> Path:
    module = distribution.replace("-", "_")
    write_files(core.site_packages, {f"{module}/__init__.py": source})
    about = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    return write_files(
        core.site_packages / f"{module}-1.0.dist-info",
        {"METADATA": about, "entry_points.txt": f"[nexus.plugins]\nculprit = {module}\n"},
    )


def _uninstall(core: Environment) -> None:
    for path in core.site_packages.glob("*culprit*"):
        shutil.rmtree(path)


@pytest.mark.acceptance("T21", "R17")
@pytest.mark.usefixtures("broken")
def test_the_prompt_is_printed_without_the_culprit(core: Environment, prompt_without_culprit: str) -> None:
    finished = core.nexus("show")

    assert (finished.returncode, finished.stdout) == (0, prompt_without_culprit)


@pytest.mark.acceptance("T21", "R17")
def test_the_culprit_and_its_defect_are_named_once(core: Environment, broken: Broken) -> None:
    finished = core.nexus("show")

    (line,) = finished.stderr.splitlines()
    assert line.count(broken.label) == 1
    assert line.count(broken.said) == 1


def test_a_strict_run_stops_and_names_the_culprit_without_a_traceback(core: Environment, broken: Broken) -> None:
    finished = core.nexus("show", NEXUS_STRICT="1")

    assert (finished.returncode, finished.stdout) == (3, "")
    assert finished.stderr.count(broken.label) == 1
    assert "Traceback" not in finished.stderr


def test_the_list_says_whether_the_culprit_was_loaded(core: Environment, broken: Broken) -> None:
    finished = core.nexus("plugin", "list", "--json")

    row = json.loads(finished.stdout)["plugins"][-1]
    assert (row["name"], row["distribution"]) == ("culprit", broken.distributions[-1])
    assert (row["status"], row["error"] is None) == ("active" if broken.loads else "failed", broken.loads)


@pytest.mark.usefixtures("damaged")
def test_a_distribution_with_damaged_metadata_is_named_and_left_out(
    core: Environment, prompt_without_culprit: str
) -> None:
    finished = core.nexus("show")

    assert (finished.returncode, finished.stdout) == (0, prompt_without_culprit)
    assert finished.stderr.count("nexus_culprit (nexus_culprit 1.0)") == 1
