from pathlib import Path

import pytest

from nexus_core import ConfigError, FileError
from nexus_core.files.places import defaults_directory, existing_directory, home_directory


def test_home_is_a_hidden_directory_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NEXUS_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert home_directory() == tmp_path / ".nexus3"


def test_the_environment_replaces_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEXUS_HOME", str(tmp_path / "elsewhere"))

    assert home_directory() == tmp_path / "elsewhere"


def test_a_machine_without_a_home_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("NEXUS_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)

    with pytest.raises(ConfigError, match="set NEXUS_HOME"):
        home_directory()


def test_the_defaults_hold_a_prompt_of_at_most_sixty_lines() -> None:
    text = (defaults_directory() / "NEXUS.md").read_text()

    assert 10 < len(text.splitlines()) <= 60


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such directory") as caught:
        existing_directory(tmp_path / "missing")

    assert caught.value.where == str(tmp_path / "missing")


def test_a_deleted_current_directory_is_an_error_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(FileError, match="does not exist any more"):
        existing_directory(".")
