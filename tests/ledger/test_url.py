"""Which ledger a url stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import Nexus, hookimpl
from nexus_core.cli.session_lookup import resolve_ledger_url
from nexus_core.errors import LedgerError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.url import open_ledger, without_secret
from nexus_core.testing import check_plugin
from nexus_core.types.ledger import Ledger
from nexus_core.types.plugins import Problem
from nexus_plugins import ledger as plugin
from nexus_plugins.ledger.sqlite import SqliteLedger
from tests.conftest import ROOT


class Shelf(MemoryLedger):
    """A ledger of a stranger."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url


class Stranger:
    @hookimpl
    def nexus_ledger(self, url: str) -> Shelf | None:
        return Shelf(url) if url.startswith(("shelf:", "sqlite:")) else None


class Wrong:
    @hookimpl
    def nexus_ledger(self, url: str) -> str:
        return url


def test_a_file_is_the_bundled_plugins(tmp_path: Path) -> None:
    with Nexus(layers=False) as nexus:
        ledger = open_ledger(nexus.host, f"sqlite:///{tmp_path / 'ledger.db'}")

    assert isinstance(ledger, SqliteLedger)
    ledger.close()


def test_memory_is_nexuss_own_whatever_plugins_say() -> None:
    class Greedy:
        @hookimpl
        def nexus_ledger(self, url: str) -> Shelf:
            return Shelf(url)

    with Nexus(layers=False, plugins=[Greedy()]) as nexus:
        ledger = open_ledger(nexus.host, "memory:")

    assert type(ledger) is MemoryLedger


def test_a_plugin_adds_a_scheme_and_may_replace_the_bundled_one() -> None:
    with Nexus(layers=False, plugins=[Stranger()]) as nexus:
        added, replaced = (open_ledger(nexus.host, url) for url in ("shelf:x", "sqlite:///x.db"))

    assert isinstance(added, Ledger)
    assert (type(added), type(replaced)) == (Shelf, Shelf)


@pytest.mark.parametrize("url", ["redis://me:secret@host/1", "nonsense", "", "mysql:secret"])
def test_an_unknown_url_is_an_error_without_its_secret(url: str) -> None:
    with Nexus(layers=False) as nexus, pytest.raises(LedgerError, match="no plugin keeps conversations") as caught:
        open_ledger(nexus.host, url)

    assert "secret" not in str(caught.value)


def test_an_answer_that_is_no_ledger_is_left_out_and_named(tmp_path: Path) -> None:
    problems: list[Problem] = []
    with Nexus(layers=False, plugins=[Wrong()], report=problems.append) as nexus:
        ledger = open_ledger(nexus.host, f"sqlite:///{tmp_path / 'ledger.db'}")

    assert isinstance(ledger, SqliteLedger)
    (problem,) = problems
    assert "returned str, expected a Ledger or None" in problem.message
    ledger.close()


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(plugin) == []
    assert check_plugin(Stranger()) == []


def test_the_page_about_the_ledger_is_true() -> None:
    page = (ROOT / "docs/reference/ledger.md").read_text(encoding="utf-8")
    block = page.partition("```python\n")[2].partition("```")[0]

    exec(block, {})  # noqa: S102 - our own page


def test_every_code_is_on_the_page() -> None:
    page = (ROOT / "docs/reference/ledger.md").read_text(encoding="utf-8")
    codes = "ledger-damaged ledger-unreadable step-changed step-missing step-misplaced step-stray blob-changed"

    for code in (
        *codes.split(),
        "blob-missing",
        "step-unreadable",
        "session-changed",
        "session-missing",
        "deletion-changed",
        "turn-lost",
        "steps-lost",
        "session-moved",
        "session-lost",
    ):
        assert f"`{code}`" in page


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:sec/r@et@host:1/db?password=secret&x=1", "postgresql://host:1/db?password=…&x=1"),
        ("sqlite:////home/me@work/ledger.db", "sqlite:////home/me@work/ledger.db"),
        ("memory:", "memory:"),
        ("shelf:secret", "shelf:…"),
        ("postgresql://me:p@sec@host/db", "postgresql://host/db"),
        ("postgresql://host/db?password=p@secret&x=1", "postgresql://host/db?password=…&x=1"),
        ("postgresql://me:secret", "postgresql://me:…"),
        ("postgresql://[::1]:5432,host:1/db", "postgresql://[::1]:5432,host:1/db"),
        ("host=h user=me password='it''s secret'", "…"),
    ],
)
def test_a_url_is_shown_without_its_secret(url: str, shown: str) -> None:
    assert without_secret(url) == shown


@pytest.mark.parametrize(
    "given", ["host=h password=secret", " password = 'se cret' host=h", "service=x", "sslmode=off"]
)
def test_a_connection_string_is_refused_without_its_password(given: str, work: Path) -> None:
    match = r"not as a URL\n.*write postgresql://USER:PASSWORD@HOST:PORT"
    with Nexus(work, ledger=given) as nexus, pytest.raises(LedgerError, match=match) as refused:
        nexus.ledger.sessions()

    assert "cret" not in str(refused.value).replace("PASSWORD", "")


@pytest.mark.parametrize("name", ["ledger.db", "hosts=1.db", "my host=1.db", "sqlite:///host=1.db", "./host=1.db"])
def test_a_file_with_an_equals_sign_in_its_name_is_a_file(name: str, tmp_path: Path) -> None:
    url = resolve_ledger_url(tmp_path, name)

    assert url == (name if name.startswith("sqlite") else f"sqlite:///{tmp_path / name}")
