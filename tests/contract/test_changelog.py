"""The changelog: the newest release is this one, and a first release names everything there is."""

from __future__ import annotations

import re

import pytest

from nexus_core import __version__
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.calls import get_hooks
from tests.conftest import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASE = re.compile(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", re.MULTILINE)


def test_the_newest_release_is_this_version() -> None:
    assert RELEASE.findall(TEXT)[0] == __version__


def test_everything_but_what_is_unreleased_has_a_version_and_a_date() -> None:
    headings = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)

    assert [heading for heading in headings if heading != "Unreleased" and not RELEASE.match(f"## {heading}")] == []


@pytest.mark.parametrize("name", [*get_hooks(), *(each.name for each in BUNDLED)])
def test_every_hook_and_every_bundled_plugin_was_announced(name: str) -> None:
    assert f"`{name}`" in TEXT
