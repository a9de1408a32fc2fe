"""The page about settings: every setting once, with the default that counts."""

from __future__ import annotations

import json
import re

from nexus_core.config.schema import ModelConfig
from nexus_core.config.validate import get_default, list_settings
from nexus_core.host.bundled import BUNDLED
from nexus_core.layers.policy import APPROVAL_SETTINGS, USER_ONLY_SETTINGS
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import ROOT

PAGE = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^\| `([\w.]+)` \| (?:`(.+?)`|-) \|", PAGE, re.MULTILINE)
OF_A_MODEL = "models.NAME."
ROWS = [(key, default) for key, default in LISTED if not key.startswith(OF_A_MODEL)]
GROUPS = {key for key in list_settings() if isinstance(get_default(key), dict) and get_default(key)}


def test_every_setting_is_listed_once_but_for_those_with_a_page_of_their_own() -> None:
    expected = {key for key in list_settings() if key not in GROUPS and not key.startswith("compaction.")}

    assert sorted(key for key, _ in ROWS) == sorted(expected)


def test_every_default_is_that_of_the_schema() -> None:
    shown = {key: json.loads(default) if default else None for key, default in ROWS}

    assert shown == {key: get_default(key) for key in shown}


def test_what_is_kept_free_by_default_is_what_a_call_keeps_free(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()

    budget = nexus.assemble(nexus.request(message="Why?")).token_budget

    assert budget.reserve_response == get_default("budget.reserve_response")
    assert budget.reserve_tools == get_default("budget.reserve_tools")


def test_everything_that_a_project_may_not_decide_is_named() -> None:
    table = PAGE.partition("## What a project may not decide\n")[2].partition("\n## ")[0]

    assert [key for key in (*USER_ONLY_SETTINGS, *APPROVAL_SETTINGS) if f"`{key}`" not in table] == []


def test_everything_that_may_be_said_of_a_model_is_listed() -> None:
    rows = [key.removeprefix(OF_A_MODEL) for key, _ in LISTED if key.startswith(OF_A_MODEL)]

    assert rows == list(ModelConfig.model_fields)


def test_every_bundled_plugin_with_settings_is_named() -> None:
    assert set(re.findall(r"plugins/(\w+)\.md#settings", PAGE)) == {
        each.name for each in BUNDLED if "nexus_settings" in (each.hooks or ())
    }
