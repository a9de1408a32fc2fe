"""The terminal that tests use: what it must not depend on."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import TerminalProgram, run_in_terminal

MANY = 1_100


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """Use up the descriptors that `select` can watch."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MANY:
        pytest.skip("this process may not open enough files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(MANY)]
    yield
    for each in opened:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_open_files")
def test_program_is_read_beside_a_thousand_open_files(tmp_path: Path) -> None:
    screen = run_in_terminal(["--version"], tmp_path)

    assert screen.code == 0
    assert screen.text.startswith("nexus ")


def test_text_is_found_where_the_terminal_has_wrapped_it(tmp_path: Path) -> None:
    with TerminalProgram(["no-such-command-at-all"], tmp_path, columns=24) as program:
        program.wait_for("unknown command 'no-such-command-at-all' known:")

        assert program.wait() == 2
