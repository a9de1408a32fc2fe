from __future__ import annotations

from typing import TYPE_CHECKING

import nexus_wordllama
import pytest

from nexus_core.testing import check_plugin, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.testing.fixtures import MakeNexus

pytest_plugins = ["nexus_core.testing.fixtures"]
pytest.importorskip("wordllama")


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(nexus_wordllama) == []


def test_texts_of_the_same_meaning_have_near_vectors() -> None:
    car, vehicle, bread = nexus_wordllama.embed_texts(["I drive a car.", "My vehicle is new.", "Bake the bread."])

    assert sum(map(float.__mul__, car, vehicle)) > sum(map(float.__mul__, car, bread))


def test_the_embedder_is_used(make_nexus: MakeNexus, nexus_home: Path) -> None:
    notes = {f"memory/{number}.md": f"Cars and garages, number {number}.\n" for number in range(12)}
    write_files(nexus_home, {"config.json": '{"memory": {"embedder": "wordllama"}}', **notes})

    result = make_nexus(plugins=[nexus_wordllama]).recall("cars and garages", limit=12)

    assert len(result.memories) == 12
    assert result.findings == ()
