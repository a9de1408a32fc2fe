"""How often a load looks at what: files each time, plugins and settings only as often as they can change."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nexus_core import ConfigError, hookimpl
from nexus_core.config import remembered
from nexus_core.plugin import MergePolicy, PluginSettings
from nexus_core.testing import write_files

if TYPE_CHECKING:
    from nexus_core.testing.fixtures import MakeNexus

SETTINGS = '{"provider": {"model": "gpt-4o"}}'
TREE = {
    f"{place}.nexus3/{name}": text
    for place in ("", "a/", "a/b/")
    for name, text in (("NEXUS.md", f"Text of {place}."), ("config.json", SETTINGS))
}


@pytest.mark.acceptance("L-15")
def test_every_load_opens_every_file_once(make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch) -> None:
    nexus = make_nexus(files=TREE, cwd="a/b")
    request = nexus.request()
    nexus.load(request)
    opened: Counter[str] = Counter()
    really_open = os.open

    def counting(path: Any, *arguments: Any, **options: Any) -> int:
        descriptor = really_open(path, *arguments, **options)
        opened[Path(path).name] += 1
        return descriptor

    monkeypatch.setattr(os, "open", counting)

    nexus.load(request)
    nexus.load(request)

    assert (opened["NEXUS.md"], opened["config.json"]) == (6, 6)


def test_plugins_are_asked_once_what_they_are_like(make_nexus: MakeNexus) -> None:
    asked: Counter[str] = Counter()

    class Curious:
        @hookimpl
        def nexus_settings(self) -> list[PluginSettings]:
            asked["settings"] += 1
            return [PluginSettings("nexus_core.plugin:Strict")]

        @hookimpl
        def nexus_merge_policies(self) -> list[MergePolicy]:
            asked["policies"] += 1
            return [MergePolicy("plugins.curious.list", "unique")]

    nexus = make_nexus(files={".nexus3/config.json": SETTINGS}, plugins=[Curious()])

    for _ in range(3):
        nexus.load()

    assert asked == {"settings": 1, "policies": 1}


def test_settings_are_checked_again_only_when_they_have_changed(
    make_nexus: MakeNexus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[object] = []
    ensure_valid = remembered.ensure_valid

    def counting(settings: Any, *others: Any) -> None:
        checked.append(settings.value)
        ensure_valid(settings, *others)

    monkeypatch.setattr(remembered, "ensure_valid", counting)
    nexus = make_nexus(files={".nexus3/config.json": SETTINGS})

    nexus.load()
    nexus.load()
    write_files(tmp_path / "work", {".nexus3/config.json": '{"provider": {"model": "other"}}'})
    nexus.load()

    assert checked == [{"provider": {"model": "gpt-4o"}}, {"provider": {"model": "other"}}]


def test_settings_that_are_wrong_are_refused_every_time(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(files={".nexus3/config.json": '{"provider": {"modle": "gpt-4o"}}'})

    for _ in range(2):
        with pytest.raises(ConfigError, match="modle"):
            nexus.load()


def test_only_layers_of_the_user_count_as_the_users(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "Mine."})
    files = {"NEXUS.md": "Theirs.", ".nexus3/NEXUS.md": "Theirs too.", "a/.nexus3/NEXUS.md": "And these."}

    loaded = make_nexus(files=files, cwd="a").load()

    trusted = {(text.layer.scope, text.source.trust) for text in loaded.texts if text.layer and text.source}
    assert trusted == {("global", "user"), ("ancestor", "project"), ("local", "project")}
