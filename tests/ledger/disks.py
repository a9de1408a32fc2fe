"""What happens when a disk is full, may not be written or fails; each prints what it found as JSON.

python -m tests.ledger.disks NAME URL NUMBER

Those that mount something want a mount namespace of their own: `unshare --map-root-user --mount python …`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from nexus_core.errors import LedgerError
from nexus_core.ledger.ledger import StoreLedger
from tests.ledger.experiments import append, become_later, opened, spawn, wait

T = TypeVar("T")

LONG = "more " * 1000


def main(name: str, url: str, number: str) -> None:
    experiment: Callable[[str, int], dict[str, object]] = globals()[name]
    print(json.dumps(experiment(url, int(number))))  # noqa: T201 - the result


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def refused(work: Callable[[], object]) -> str:
    """The error that something ends with; "" when it succeeds."""
    try:
        work()
    except LedgerError as error:
        return str(error)
    return ""


def readable(ledger: StoreLedger) -> set[str]:
    """The steps that somebody gets to see."""
    session = ledger.session("work")
    return {step.id for step in ledger.thread(str(session.tip)) if step.messages} if session else set()


def found(ledger: StoreLedger) -> list[str]:
    return [str(finding) for finding in ledger.verify()]


# ---- no room ----------------------------------------------------------------------------------------------


def limited(url: str, number: int) -> dict[str, object]:
    """Files may not grow any more, as if the disk were full; then they may again."""
    ledger = opened(url)
    ledger.create("work")
    kept = {append(ledger, "work", str(turn)) for turn in range(number)}
    largest = max(file.stat().st_size for file in file_of(url).parent.iterdir())
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 20_000, unlimited[1]))
    errors = fill(ledger, kept)
    missing = len(kept - readable(ledger))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    return {"kept": len(kept), "errors": errors, "missing": missing} | afterwards(ledger, url, kept)


def full(url: str, number: int) -> dict[str, object]:
    """A disk of one megabyte is filled to its end; then it grows."""
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(file_of(url).parent))
    ledger = opened(url)
    ledger.create("work")
    kept = {append(ledger, "work", str(turn)) for turn in range(number)}
    errors = fill(ledger, kept)
    missing = len(kept - readable(ledger))
    with closing(opened(url)) as other:
        missing_to_others = len(kept - readable(other))
    beside = refused(lambda: opened(f"{url}-new").create("work"))
    left = [file.name for file in file_of(url).parent.iterdir() if not file.name.startswith(file_of(url).name)]
    mount("-o", "remount,size=8m", str(file_of(url).parent))
    return {
        "kept": len(kept),
        "errors": errors,
        "missing": missing,
        "missing_to_others": missing_to_others,
        "beside": beside,
        "left": left,
    } | afterwards(ledger, url, kept)


def fill(ledger: StoreLedger, kept: set[str]) -> list[str]:
    """Append until there is no room, and then some; the errors."""
    errors: list[str] = []
    while len(errors) < 3:
        if error := refused(lambda: kept.add(append(ledger, "work", LONG))):
            errors.append(error)
    return errors


def afterwards(ledger: StoreLedger, url: str, kept: set[str]) -> dict[str, object]:
    """Whether it goes on, here and for somebody who comes then."""
    kept.add(append(ledger, "work", "again"))
    with closing(opened(url)) as other:
        kept.add(append(other, "work", "again"))
        return {"missing_afterwards": len(kept - readable(other)), "found": found(other)}


# ---- not to be written ------------------------------------------------------------------------------------


def read_only(url: str, number: int) -> dict[str, object]:
    """The file system may only be read; then it may be written again."""
    directory = str(file_of(url).parent)
    mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", directory)
    with closing(opened(url)) as ledger:
        ledger.create("work")
        kept = {append(ledger, "work", str(turn)) for turn in range(number)}
    mount("-o", "remount,ro", directory)
    ledger = opened(url)
    errors = [refused(lambda: append(ledger, "work", "more")), refused(lambda: opened(f"{url}-new").create("work"))]
    missing, damage = len(kept - readable(ledger)), found(ledger)
    mount("-o", "remount,rw", directory)
    return {"kept": len(kept), "errors": errors, "missing": missing, "damage": damage} | afterwards(ledger, url, kept)


def unwritable(url: str, number: int) -> dict[str, object]:
    """File and directory may not be written by whoever comes, then they may again."""
    path = file_of(url)
    with closing(opened(url)) as ledger:
        ledger.create("work")
        kept = {append(ledger, "work", str(turn)) for turn in range(number)}
    told = path.parent.parent / "told"
    told.write_text("")
    told.chmod(0o666)
    path.chmod(0o444)
    path.parent.chmod(0o555)

    def visit() -> None:
        if os.getuid() == 0:  # whom no mode keeps from anything
            os.setuid(65534)
        ledger = opened(url)
        error = refused(lambda: append(ledger, "work", "more"))
        told.write_text(json.dumps({"errors": [error], "missing": len(kept - readable(ledger))}))

    failed = wait([spawn(visit)])
    path.parent.chmod(0o700)
    path.chmod(0o600)
    return {"kept": len(kept), "failed": failed, **json.loads(told.read_text())} | afterwards(opened(url), url, kept)


# ---- failing ----------------------------------------------------------------------------------------------


def failing(url: str, number: int) -> dict[str, object]:
    """Somebody (strace) lets calls of the system fail now and then; whatever fails is tried again."""
    ledger = opened(url)
    errors: list[str] = []

    def insist(work: Callable[[], T]) -> T:
        for _ in range(50):
            try:
                return work()
            except LedgerError as error:
                errors.append(str(error))
        raise AssertionError("it never works again", errors[-1])

    insist(lambda: ledger.session("work") or ledger.create("work"))
    kept = {insist(lambda turn=turn: append(ledger, "work", f"{turn} {LONG}")) for turn in range(number)}  # type: ignore[misc]
    there = insist(lambda: [step.id for step in ledger.steps()])
    return {
        "kept": len(kept),
        "failed": len(errors),
        "errors": sorted(set(errors)),
        "missing": len(kept - set(there)),
        "more": len(there) - len(kept),
    }


def migration(url: str, number: int) -> dict[str, object]:
    """A later Nexus opens a file of this one, and says what it finds in it."""
    become_later()
    with closing(opened(url)) as ledger:
        for turn in range(number):
            append(ledger, "work", str(turn))
        ledger.create(f"by {os.getpid()}")
        return {"there": len(list(ledger.steps())), "found": found(ledger)}


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)  # noqa: S607 - wherever it is


if __name__ == "__main__":
    main(*sys.argv[1:])
