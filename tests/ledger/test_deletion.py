"""A session that is deleted is really gone, others keep what they need, and verify tells it from damage."""

from __future__ import annotations

import base64
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core.errors import LedgerError, UnknownNameError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Image, Message
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.ledger.backends import Backend, add, said, tell, texts

WORDS = "swordfish-of-the-deleted"
PICTURE = base64.b64encode(b"picture of a swordfish " * 100).decode()


def fill(ledger: StoreLedger) -> list[Step]:
    """A session with a fork and a worker, a picture, a prompt of its own and one that all share."""
    shared = ledger.put_blob(b'{"system":"shared","tools":[]}')
    own = ledger.put_blob(f'{{"system":"{WORDS}","tools":[]}}'.encode())
    ledger.create("main", data={"about": f"{WORDS} in data"})
    steps = [
        add(
            ledger, "main", NewStep(kind="turn", closes=True, messages=(Message("user", "kept"),), data={"epoch": own})
        ),
        add(ledger, "main", said("also kept")),
    ]
    ledger.create("fork", head=steps[1].id, origin="main")
    add(ledger, "fork", NewStep(kind="turn", closes=True, messages=(Message("user", "fork"),), data={"epoch": shared}))
    picture = Message("user", (Image(mime="image/png", data=PICTURE),))
    private = ledger.put_blob(f'{{"system":"private {WORDS}","tools":[]}}'.encode())
    steps += [
        add(ledger, "main", said(f"{WORDS} was said")),
        add(ledger, "main", NewStep(kind="turn", closes=True, messages=(picture,), data={"epoch": shared})),
        add(ledger, "main", NewStep(kind="turn", closes=True, messages=(), data={"epoch": private, "note": WORDS})),
        add(ledger, "main", said(f"open {WORDS}", kind="input", closes=False)),
    ]
    ledger.rename("main", f"{WORDS}-name")
    ledger.rename(f"{WORDS}-name", "work")
    ledger.create("worker", data={"parent": "work"})
    tell(ledger, "worker", "worked")
    assert list(ledger.verify()) == []
    return steps


@pytest.mark.acceptance("R23")
def test_delete_erases_what_no_other_session_needs(ledger: StoreLedger) -> None:
    steps = fill(ledger)

    report = ledger.delete("work", reason="a leak")

    assert (report.labels, report.steps, report.blobs) == (("work",), 4, 2)
    assert (report.sharing, report.workers, report.is_purged) == (("fork",), ("worker",), True)
    assert {name: ledger.session(name) for name in ("work", "main", f"{WORDS}-name")} == dict.fromkeys(
        ("work", "main", f"{WORDS}-name")
    )
    assert [session.label for session in ledger.sessions(status=None)] in (["fork", "worker"], ["worker", "fork"])
    assert texts(ledger.thread(str(ledger.session("fork").tip))) == ["kept", "also kept", "fork"]  # type: ignore[union-attr]
    left = [ledger.step(step.id) for step in steps]
    assert [step.messages == () for step in left if step] == [False, False, True, True, True, True]
    assert [(step.id, step.parent, step.digest, step.chain) for step in left if step] == [
        (step.id, step.parent, step.digest, step.chain) for step in steps
    ]
    assert list(ledger.verify()) == []
    (deletion,) = ledger.deletions()
    assert (deletion.id, deletion.reason, deletion.steps, deletion.blobs) == (report.ids[0], "a leak", 4, 2)


@pytest.mark.acceptance("R23")
def test_delete_without_forks_erases_shared_steps_later(ledger: StoreLedger) -> None:
    fill(ledger)
    ledger.delete("work")

    report = ledger.delete("fork")

    assert (report.steps, report.blobs) == (3, 2)
    assert [session.label for session in ledger.sessions()] == ["worker"]
    assert [row.number for row in ledger.deletions()] == [1, 2]
    assert list(ledger.verify()) == []


@pytest.mark.acceptance("R23")
def test_delete_with_workers_records_each(ledger: StoreLedger) -> None:
    fill(ledger)

    report = ledger.delete("work", workers=True)

    assert (report.labels, report.workers, len(report.ids)) == (("work", "worker"), (), 2)
    assert [session.label for session in ledger.sessions()] == ["fork"]
    assert list(ledger.verify()) == []


@pytest.mark.acceptance("R23")
def test_a_dry_run_deletes_nothing(ledger: StoreLedger) -> None:
    fill(ledger)

    tried = ledger.delete("work", dry_run=True)

    assert (tried.labels, tried.steps, tried.blobs, tried.ids) == (("work",), 4, 2, ())
    assert ledger.session("work") is not None
    assert ledger.deletions() == []


@pytest.mark.acceptance("R23")
def test_a_session_that_is_unknown_or_deleted_already_is_an_error(ledger: StoreLedger) -> None:
    fill(ledger)
    ledger.delete("work")

    for label in ("work", "nobody"):
        with pytest.raises(UnknownNameError, match="unknown session"):
            ledger.delete(label)


@pytest.mark.acceptance("R23")
def test_a_deleted_step_cannot_be_forked(ledger: StoreLedger) -> None:
    steps = fill(ledger)
    ledger.delete("work")

    with pytest.raises(LedgerError, match="was deleted with its session"):
        ledger.create("again", head=steps[3].id)


@pytest.mark.acceptance("R23")
def test_a_session_goes_on_beside_a_deleted_one(ledger: StoreLedger) -> None:
    steps = fill(ledger)
    ledger.delete("work")

    ledger.create("work", head=steps[1].id, origin="fork")
    tell(ledger, "work", "a new way")

    assert texts(ledger.thread(str(ledger.session("work").tip))) == ["kept", "also kept", "a new way"]  # type: ignore[union-attr]
    assert list(ledger.verify()) == []


@pytest.mark.acceptance("R23")
def test_an_empty_session_is_deleted(ledger: StoreLedger) -> None:
    ledger.create("empty")

    assert ledger.delete("empty").steps == 0
    assert (ledger.sessions(), len(ledger.deletions()), list(ledger.verify())) == ([], 1, [])


@pytest.mark.acceptance("R23")
def test_a_copy_has_the_deletions(ledger: StoreLedger) -> None:
    fill(ledger)
    ledger.delete("work", reason="a leak")
    new = MemoryLedger()

    rebuilt = ledger.repair(new)

    assert rebuilt.lost == ()
    assert list(new.steps()) == list(ledger.steps())
    assert new.deletions() == ledger.deletions()
    assert list(new.verify()) == []


@pytest.mark.acceptance("R23")
def test_a_copy_without_another_session_verifies(ledger: StoreLedger) -> None:
    fill(ledger)
    ledger.delete("work")
    new = MemoryLedger()

    ledger.repair(new, without=["fork"])

    assert [session.label for session in new.sessions()] == ["worker"]
    assert list(new.verify()) == []
    assert len(new.deletions()) == 1


# ---- the file -------------------------------------------------------------------------------------------------------


def bytes_beside(path: Path) -> bytes:
    """Everything in the file and its log."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")) if each.is_file())


@pytest.mark.acceptance("R23")
def test_nothing_of_a_deleted_session_is_left_in_the_file(sqlite: SqliteLedger, path: Path) -> None:
    fill(sqlite)
    for number in range(60):  # pages are split and filled anew, and keep what lay in their gaps
        add(sqlite, "work", NewStep(kind="reply", messages=(Message("assistant", f"{WORDS} {number} " * 40),)))
    sqlite.delete("fork")
    assert WORDS.encode() in bytes_beside(path)

    report = sqlite.delete("work")

    assert report.is_purged
    assert WORDS.encode() not in bytes_beside(path)
    assert base64.b64decode(PICTURE)[:20] not in bytes_beside(path)
    assert list(sqlite.verify()) == []


@pytest.mark.acceptance("R23")
def test_what_another_program_still_reads_is_overwritten_by_the_next(
    sqlite: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus_plugins.ledger.sqlite.database.LOCK_TIMEOUT_SECONDS", 0.1)
    fill(sqlite)
    with sqlite.store.snapshot() as reader:
        reader.session_rows()
        report = sqlite.delete("work")
        found = [each.code for each in sqlite.verify()]
    sqlite.delete("fork")

    assert (report.is_purged, found) == (False, ["deletion-changed"])
    assert WORDS.encode() not in bytes_beside(path)
    assert list(sqlite.verify()) == []


@pytest.mark.acceptance("R23")
def test_a_deletion_whose_program_died_before_it_overwrote_is_finished(sqlite: SqliteLedger, path: Path) -> None:
    fill(sqlite)
    sqlite.delete("fork")
    purge, sqlite.store.purge = sqlite.store.purge, lambda: False  # type: ignore[method-assign]
    sqlite.delete("work")
    sqlite.store.purge = purge  # type: ignore[method-assign]
    found = [each.code for each in sqlite.verify()]
    sqlite.close()

    with closing(open_sqlite(sqlite.url)) as again:
        assert [session.label for session in again.sessions()] == ["worker"]
        assert (found, list(again.verify())) == (["deletion-changed"], [])
    assert WORDS.encode() not in bytes_beside(path)


@pytest.mark.acceptance("R23")
def test_steps_cannot_be_erased_without_a_record(backend: Backend) -> None:
    if backend.name == "memory":
        pytest.skip("nothing else can change it")
    with closing(backend.open()) as ledger:
        steps = fill(ledger)
        with pytest.raises(LedgerError, match="steps are only ever added"):
            ledger.store.write(lambda: ledger.store.erase_steps([steps[0].id]))  # type: ignore[attr-defined]
        assert list(ledger.verify()) == []
