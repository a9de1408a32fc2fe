"""What every test may use: an isolated home, a Nexus on demand, the command line, plugins installed for real."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from nexus_core.cli import lazy_group
from nexus_core.cli.root import build_root_command
from nexus_core.cli.run import run
from nexus_core.host.discovery import find_installed_candidates
from nexus_core.testing import write_files
from tests.effort import choose_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.types.plugins import Command

# Thousands of tests are collected, all of which stay: looking for garbage among them doubles the time that it takes.
gc.disable()

MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a directory of the user's own in it
MIN_FREE_BYTES = 8 << 30
"""Environments that the packaging tests make are the most that a run writes: a tenth of this."""


def use_memory() -> None:
    """Put temporary files into memory, where there is room for them and TMPDIR names no other place.

    A test of a session waits for the disk some thirty times. Tests of faults let the calls fail themselves.
    """
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return
    system = os.statvfs(MEMORY)
    if system.f_bavail * system.f_frsize >= MIN_FREE_BYTES and not system.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


use_memory()  # before pytest makes its own directory, and for the processes that it starts

# Tests assert properties, never seconds: a busy machine must not turn them red. Nor may luck: what `make quick` and
# `make test` try is the same every time. `make fuzz`, `faults` and `hostile` look for what nobody has tried yet.
# `--hypothesis-profile` chooses one of these; `tests.effort.examples` scales what a test asks for itself.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("busy"), max_examples=10, derandomize=True)
settings.register_profile("full", settings.get_profile("busy"), max_examples=100, derandomize=True)
settings.register_profile("searching", settings.get_profile("busy"), max_examples=100)
settings.register_profile("long", settings.get_profile("busy"), max_examples=2_000)
settings.load_profile("full")

pytest_plugins = ["nexus_core.testing.fixtures", "tests.ledger.servers", "tests.tables"]

ROOT = Path(__file__).resolve().parents[1]
CORPUS = Path(os.environ.get("NEXUS_CORPUS") or "no-corpus")
"""More samples than are in `tests/samples`, for those who have some; no test needs them."""


def sample_files(kind: str) -> list[Path]:
    """Files of a kind as people write them: ours, whose content is made up, and those that NEXUS_CORPUS names."""
    return sorted(path for folder in (ROOT / "tests/samples", CORPUS) for path in folder.glob(f"{kind}/**/*.*"))


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Cli(Protocol):
    def __call__(self, *arguments: str) -> Outcome: ...


class InstallPlugin(Protocol):
    def __call__(self, name: str, source: str, *, distribution: str = ..., version: str = ...) -> None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--most-cases", type=int, metavar="N", help="try at most N cases of each parametrized test")


@pytest.hookimpl(trylast=True)  # of the tests that are left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases if there are to be fewer, and begin with what takes longest if several processes share them."""
    if most := config.getoption("--most-cases", default=None):
        chosen = choose_cases(items, most)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    if hasattr(config, "workerinput"):
        from tests.scheduling import sort_by_weight  # it needs pytest-xdist

        sort_by_weight(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Share out the tests file by file with `--dist loadfile`, but some folders as a whole."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.scheduling import UnitScheduling  # as above

    return UnitScheduling(config, log)


def pytest_collection_finish() -> None:
    """Collect garbage again, but never look again at what is there now."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Iterator[None]:
    """Keep the process from looking for garbage again and again while it ends."""
    yield
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def commands_once() -> Iterator[None]:
    """Typer takes longer to make a command of ours than most take to run; in one process, once is enough."""
    load, load_once = lazy_group.load_command, cache(lazy_group.load_command)

    def load_command(command: Command, plugin: str, path: str) -> object:
        is_ours = command.target.startswith(("nexus_core.", "nexus_plugins."))
        return (load_once if is_ours else load)(command, plugin, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy_group, "load_command", load_command)
        patch.setattr("nexus_core.cli.run.build_root_command", cache(build_root_command))
        # A process that ends need not look for garbage again; this one runs thousands of commands.
        patch.setattr("nexus_core.cli.run.gc.freeze", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests count and check is not kept in the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The directory commands run in."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture(autouse=True)
def price_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices are as old as on this day, so that no test fails when time passes."""
    monkeypatch.setattr("nexus_core.tokens.prices.get_today", lambda: date(2026, 11, 17))


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    nexus_home: Path,  # noqa: ARG001 - the home must be in place
    work: Path,
) -> Cli:
    """Run `nexus` in this process, in an empty directory, however wide the terminal of the tests is."""
    monkeypatch.chdir(work)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nexus_home: Path) -> Iterator[InstallPlugin]:  # noqa: ARG001 - as above
    """Install a plugin as pip would: a module and its metadata in a directory of `sys.path`."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.delenv("NEXUS_PLUGINS")
    # Whatever else is installed beside Nexus is not part of a test.
    only_here = partial(find_installed_candidates, search_path=[str(site)])
    monkeypatch.setattr("nexus_core.nexus.find_installed_candidates", only_here)
    monkeypatch.setattr("nexus_core.cli.commands.plugin.find_installed_candidates", only_here)
    monkeypatch.setattr("nexus_core.host.manager.find_installed_candidates", only_here)
    before = set(sys.modules)

    def install(name: str, source: str, *, distribution: str = "", version: str = "1.0") -> None:
        distribution = distribution or f"nexus-{name}"
        module = f"{distribution.replace('-', '_')}_{name}"
        write_files(
            site,
            {
                f"{module}.py": source,
                f"{distribution.replace('-', '_')}-{version}.dist-info/METADATA": (
                    f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
                ),
                f"{distribution.replace('-', '_')}-{version}.dist-info/entry_points.txt": (
                    f"[nexus.plugins]\n{name} = {module}\n"
                ),
            },
        )

    yield install
    for name in set(sys.modules) - before:
        if str(site) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
