"""What the pages about compaction say is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core.compaction.trigger import CompactionOptions
from nexus_core.config.schema import CompactionConfig
from nexus_core.testing import check_plugin
from nexus_core.types.compaction import FACT_CLASSES
from tests.conftest import ROOT

REFERENCE = (ROOT / "docs/reference/compaction.md").read_text(encoding="utf-8")
PLUGIN, IN_MEMORY = re.findall(r"^```python\n(.*?)^```$", REFERENCE, re.MULTILINE | re.DOTALL)


def test_every_setting_is_listed_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:`(.+?)`|-) \|", REFERENCE, re.MULTILINE))

    assert list(CompactionConfig.model_fields) == [name for name in rows if name in CompactionConfig.model_fields]
    for name, default in CompactionOptions()._asdict().items():
        shown = {"True": "true", "None": ""}.get(str(default), str(default))
        words = str(list(default)) if isinstance(default, tuple) else shown
        assert rows[name].replace('"', "").replace("'", "") == words.replace("'", ""), name


def test_every_class_of_evidence_is_listed() -> None:
    table = REFERENCE.partition("## What is evidence\n")[2].partition("\n## ")[0]

    assert tuple(re.findall(r"^\| (\w+) \| [`U]", table, re.MULTILINE)) == FACT_CLASSES


def test_the_plugin_keeps_the_contract() -> None:
    names: dict[str, type] = {}

    exec(compile(PLUGIN, "compaction.md", "exec"), names)  # noqa: S102 - our own documentation

    assert check_plugin(names["Plugin"]()) == []


@pytest.mark.slow
@pytest.mark.acceptance("E-07", "Q-06")
def test_the_example_runs(tmp_path: Path) -> None:
    environment = {**os.environ, "NEXUS_HOME": str(tmp_path), "NEXUS_PLUGINS": "none", "XDG_CACHE_HOME": str(tmp_path)}

    outcome = subprocess.run(
        [sys.executable, "-c", IN_MEMORY], cwd=ROOT, env=environment, text=True, capture_output=True, check=True
    )

    assert re.fullmatch(r"\d+ \d+ True\n", outcome.stdout)
