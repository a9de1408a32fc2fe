"""Same input, same bytes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core import Request, Section, hookimpl
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.discovery import PluginCandidate, PluginPolicy
from nexus_core.host.manager import Host
from nexus_core.layers.load import build_layer_sections, load_layers
from nexus_core.plugin import Layer
from nexus_core.rendering import render_labelled
from nexus_core.testing import write_files
from tests.effort import sampled


class Contributor:
    """Adds a layer and two sections whose order and id collide with those of its siblings."""

    def __init__(self, name: str) -> None:
        self._name = name

    @hookimpl
    def nexus_layers(self, request: Request) -> list[Layer]:
        return [Layer(f"global:{self._name}", request.home / self._name, "global")]

    @hookimpl
    def nexus_static_sections(self) -> list[Section]:
        return [Section(each, title="Same", text=f"{self._name} {each}") for each in ("b", "a")]


def candidates() -> list[PluginCandidate]:
    names = ["alpha", "beta", "gamma", "delta"]
    given = [
        PluginCandidate(name=name, origin="installed", load=lambda name=name: Contributor(name))  # type: ignore[misc]
        for name in names
    ]
    return [*BUNDLED, *given]


def prompt(ordered: list[PluginCandidate], request: Request) -> str:
    host = Host(ordered, PluginPolicy())
    loaded = load_layers(host, request)
    return render_labelled(build_layer_sections(loaded) + host.static_sections(request, loaded))


def test_the_order_in_which_plugins_are_registered_never_shows(tmp_path: Path) -> None:
    write_files(tmp_path, {f"home/{name}/NEXUS.md": name for name in ("alpha", "beta", "gamma", "delta")})
    request = Request(cwd=tmp_path, home=tmp_path / "home")
    generator = random.Random(7)  # noqa: S311 - a shuffle to be repeated, not a secret
    orders = [generator.sample(candidates(), k=len(candidates())) for _ in range(50)]

    prompts = {prompt(order, request) for order in orders}

    assert len({tuple(candidate.name for candidate in order) for order in orders}) > 40
    assert len(prompts) == 1
    assert prompts.pop().count("## Same") == 8


@pytest.mark.slow
@pytest.mark.parametrize("command", sampled(["show --json", "plugin list --json", "--help"], one_in=3))
def test_the_hash_seed_never_shows(tmp_path: Path, command: str) -> None:
    write_files(tmp_path / "work", {".nexus3/NEXUS.md": "text"})

    def output(seed: int) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "NEXUS_HOME": str(tmp_path / "home")}
        return subprocess.run(
            [sys.executable, "-m", "nexus_core", *command.split()],
            cwd=tmp_path / "work",
            env=environment,
            capture_output=True,
            check=True,
        ).stdout

    assert len({output(seed) for seed in (0, 1, 12345)}) == 1
