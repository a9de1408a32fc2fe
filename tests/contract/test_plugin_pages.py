"""Every bundled plugin has a page: what it does, what it answers, what can be set, how to do without it."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from nexus_core.config.validate import import_settings_models
from nexus_core.host.bundled import BUNDLED
from tests.conftest import ROOT, Cli

FOLDER = ROOT / "docs/reference/plugins"
NAMES = [candidate.name for candidate in BUNDLED]


def test_every_bundled_plugin_has_a_page_and_no_other_has_one() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_the_plugin_does_and_how_to_do_without_it(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")

    _, _, words, *_ = page.split("\n\n")
    assert page.startswith(f"# The plugin `{name}`\n")
    assert len(words) > 100
    assert f"`NEXUS_PLUGINS=-{name}`" in page
    assert "\nWithout it, " in page


@pytest.mark.parametrize("name", NAMES)
def test_a_page_lists_the_hooks_and_the_settings_of_the_code(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    plugin = import_module(f"nexus_plugins.{name}")
    (candidate,) = (each for each in BUNDLED if each.name == name)
    settings: set[str] = set()
    if hasattr(plugin, "nexus_settings"):
        (declared,) = plugin.nexus_settings()
        settings = set(import_settings_models({name: declared.model})[name].model_fields)

    assert tuple(re.findall(r"^\| \[`(nexus_\w+)`\]", page, re.MULTILINE)) == candidate.hooks
    assert {key for key in re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE) if "." not in key} == settings


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_is_there_without_a_plugin(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", f"none,-{name}")

    outcome = cli("show")

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("# System Configuration\n")
