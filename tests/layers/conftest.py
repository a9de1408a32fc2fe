"""A home and a repository, in which agents look for their instructions."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    directory = tmp_path / "code" / "shop"
    (directory / ".git").mkdir(parents=True)
    (directory / "web").mkdir()
    return directory
