"""What the command line says of a request that is large in bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from nexus_core.types.messages import Image, Text
from tests.conftest import Cli
from tests.session.support import says

LIMIT = 50_000


@pytest.fixture
def session(work: Path, nexus_home: Path) -> Iterator[Session]:
    """A conversation about pictures, more than fit into a request."""
    limit = {"models": {"claude-sonnet-4": {"request_bytes": LIMIT}}}
    write_files(nexus_home, {"config.json": json.dumps(limit)})
    with Nexus(work, home=nexus_home) as nexus:
        talk = nexus.session("pictures", model="claude-sonnet-4")
        for name in "ABC":
            talk.ask([Text("What is it?"), Image(mime="image/png", data=name * 20_000)])
            talk.record(says(f"It is {name}.", name=f"msg_{name}"))
        yield talk


def test_the_pictures_that_are_told_in_words_are_named_by_their_steps(cli: Cli, session: Session) -> None:
    outcome = cli("assemble", "And now?", "--session", session.name)

    facts = json.loads(cli("assemble", "And now?", "--session", session.name, "--json").out)
    masked = [each["name"] for each in facts["placements"] if each["decision"]["action"] == "masked"]
    assert outcome.code == 0
    assert masked
    for step in masked:
        assert f"left out: pictures or documents in step {step}, by request_bytes" in outcome.err
    assert f"bytes of the {LIMIT:,} that a request may have." in outcome.err


def test_the_same_for_programs(cli: Cli, session: Session) -> None:
    facts = json.loads(cli("assemble", "And now?", "--session", session.name, "--json").out)

    assert [each["action"] for each in facts["decisions"]] == ["masked"]
    assert facts["budget"]["byte_limit"] == LIMIT
    assert len(json.dumps(facts["history"])) < facts["budget"]["bytes"] <= LIMIT


def test_context_tells_it_too(cli: Cli, session: Session) -> None:
    outcome = cli("context", "--session", session.name)
    facts = json.loads(cli("context", "--session", session.name, "--json").out)

    assert outcome.code == 0
    assert f"bytes of the {LIMIT:,} that a request may have" in outcome.out.splitlines()[3]
    assert "pictures or documents in step" in outcome.out
    assert facts["fits"] is True
    assert 0 < facts["bytes"] <= facts["byte_limit"] == LIMIT


def test_of_a_small_request_no_bytes_are_told(cli: Cli) -> None:
    assert "bytes" not in cli("assemble", "Why?").err
    assert "bytes" not in cli("context").out


@pytest.mark.usefixtures("session")
def test_what_is_too_large_is_refused_with_what_it_consists_of(cli: Cli) -> None:
    outcome = cli("assemble", "x" * LIMIT, "--session", "pictures")

    assert outcome.code == 1
    assert f"bytes do not fit into {LIMIT:,}" in outcome.err
    assert "  event    50,195" in outcome.err
    assert "models.<name>.request_bytes" in outcome.err
