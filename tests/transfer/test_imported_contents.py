"""Every text, call and result that another reading finds in a file is shown by the sessions of its import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import CORPUS
from tests.transcripts.support import AGENTS, SAMPLES
from tests.transfer.session_contents import import_file

REAL = sorted(path for path in (CORPUS / "sessions").rglob("*") if path.is_file())


@pytest.mark.parametrize("file", sorted([*SAMPLES.iterdir(), *AGENTS.iterdir()]), ids=lambda file: file.name)
def test_the_sessions_of_a_sample_show_all_of_it(file: Path) -> None:
    found = import_file(file)

    assert (found.outcome, found.missing) == ("lossless", ())
    assert found.contents > 1


@pytest.mark.skipif(not REAL, reason="NEXUS_CORPUS names no folder of sessions")
@pytest.mark.parametrize("file", REAL, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_sessions_of_a_real_file_show_all_of_it_or_it_is_refused(file: Path) -> None:
    found = import_file(file)

    assert found.missing == ()
    assert found.outcome == "lossless" or found.refused in ("partial-session", "unknown-format")
