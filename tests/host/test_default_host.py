"""The host of functions that are used without a Nexus."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import ConfigError
from nexus_core.host.manager import get_default_host
from nexus_core.testing import write_files
from tests.conftest import InstallPlugin

pytestmark = pytest.mark.usefixtures("nexus_home")


@pytest.fixture(autouse=True)
def elsewhere(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)


def test_it_is_made_once() -> None:
    assert get_default_host() is get_default_host()


def test_it_has_the_bundled_plugins_and_those_that_are_installed(install_plugin: InstallPlugin) -> None:
    install_plugin("mine", "from nexus_core import hookimpl\n@hookimpl\ndef nexus_models(): return []\n")

    names = {plugin.name for plugin in get_default_host().plugins}

    assert {"mine", "models", "tiktoken_counter"} <= names


def test_what_the_user_has_disabled_is_not_in_it(nexus_home: Path) -> None:
    before = get_default_host()
    write_files(nexus_home, {"config.json": '{"plugins": {"disabled": ["models"]}}'})

    status = {plugin.name: plugin.status for plugin in get_default_host().plugins}

    assert status["models"] == "disabled"
    assert get_default_host() is not before
    assert get_default_host().models() == {}


def test_a_project_has_no_say_in_it(work: Path) -> None:
    write_files(work, {".nexus3/config.json": '{"plugins": {"disabled": ["models"]}}'})

    assert get_default_host().models()


def test_settings_that_cannot_be_read_are_a_clear_error(nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": "{"})

    with pytest.raises(ConfigError):
        get_default_host()
