"""What the how-to shows can be written so."""

from __future__ import annotations

import json
import re

import pytest

from nexus_core.config.validate import build_config
from nexus_core.types.settings import Settings
from nexus_plugins.providers._settings import Endpoint, ProvidersSettings
from tests.conftest import ROOT

TEXT = (ROOT / "docs/how-to/summarize-with-a-model.md").read_text()
BLOCKS = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_settings_of_the_how_to_are_valid(block: str) -> None:
    config = build_config(Settings(json.loads(block)), {"providers": ProvidersSettings})

    assert config.plugins or config.compaction.command


def test_the_how_to_names_every_setting_of_an_endpoint_and_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", TEXT, re.MULTILINE))

    assert list(rows) == list(Endpoint.model_fields)
    assert (rows["max_retries"], rows["timeout"], rows["allow_http"]) == ("2", "120", "false")
