"""Lookup of the ledger, session and directory that a command names."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexus_core.errors import LedgerError, LedgerUnreachableError, UnknownNameError, UsageError
from nexus_core.files.places import expand_user
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, SessionRecord

_URL_PATTERN = r"[a-z][a-z0-9+.-]+:"  # one letter would be a drive
_SQLITE_PREFIX = "sqlite:///"
EMPTY_LEDGER_HINT = "`nexus session import` reads those of other agents."
MAX_LISTED_NAMES = 8
"""Names that an error lists; more would not be read."""

LedgerOption = Annotated[
    str,
    typer.Option("--ledger", metavar="URL", help="Use this ledger: a file, sqlite:///… or postgresql://…"),
]


def list_session_names(ctx: typer.Context) -> list[str]:
    """Return the names of all sessions, for completion."""
    from nexus_core.text.secrets import completable_names

    with open_ledger_nexus(ctx, ctx.params.get("ledger") or "") as nexus:
        return completable_names(get_session_names(nexus.ledger))


def build_session_option(text: str) -> Any:  # noqa: ANN401 - as Typer's own
    """Return the option `--session NAME` with its help text."""
    return typer.Option("--session", metavar="NAME", help=text, autocompletion=list_session_names)


SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The session, by its name or the beginning of it.", autocompletion=list_session_names
    ),
]
OptionalSessionArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="The session, by its name or the beginning of it; all by default.",
        autocompletion=list_session_names,
    ),
]


@contextmanager
def open_ledger_nexus(ctx: typer.Context, ledger: str, *, writes: bool = False) -> Iterator[Nexus]:
    """Yield a Nexus with the named ledger, or the user's own.

    Args:
        ctx: The command.
        ledger: The value of `--ledger`.
        writes: True if the command may create a ledger. A file that is only read must exist.

    Raises:
        UsageError: There is no such file.
    """
    cli: CliContext = ctx.find_root().obj
    cli.ledger = ledger
    url = resolve_ledger_url(cli.cwd, ledger)
    if not writes and url and url.startswith(_SQLITE_PREFIX) and not os.path.lexists(_parse_sqlite_path(url)):
        raise UsageError(
            "there is no ledger", where=str(_parse_sqlite_path(url)), hint="name the file of a ledger, or its url"
        )
    with cli.nexus(ledger=url) as nexus:
        yield nexus


@contextmanager
def open_session_nexus(
    ctx: typer.Context, label: str, ledger: str, *, writes: bool = False, exact: bool = False
) -> Iterator[Nexus]:
    """Yield a Nexus for the directory of a session, or for this one if there is no such session.

    Args:
        ctx: The command.
        label: The session; "" for none.
        ledger: As for `open_nexus`.
        writes: As for `open_nexus`.
        exact: Whether the name must be whole, because it may be that of a new session.
    """
    cli: CliContext = ctx.find_root().obj
    with (
        open_ledger_nexus(ctx, ledger, writes=writes) as nexus,
        use_session_directory(cli, nexus, label, exact=exact) as there,
    ):
        yield there


@contextmanager
def use_session_directory(cli: CliContext, nexus: Nexus, label: str, *, exact: bool = False) -> Iterator[Nexus]:
    """Yield a Nexus for the directory of a session with a given ledger. `-C` overrides it."""
    if label and not exact:
        label = resolve_session_name(nexus.ledger, label)
    record = nexus.ledger.session(label) if label and not cli.is_directory_named else None
    kept = (record.payload.cwd or "") if record else ""
    if not kept or kept == str(nexus.cwd):
        yield nexus
    elif os.path.isdir(kept):  # noqa: PTH112 - Path.is_dir raises where it cannot be reached
        cli.console.message(visible_line(f"(session {label!r} works in {kept}: that is read)"), style="dim")
        with cli.nexus(ledger=nexus.ledger, cwd=Path(kept)) as there:
            yield there
    else:
        where = f"{kept}, which is not there; {nexus.cwd} is read instead"
        cli.console.warning(visible_line(f"session {label!r} works in {where}"))
        yield nexus


def resolve_ledger_url(directory: Path, named: str) -> str | None:
    """Return the URL of a ledger that may be named as a file, or None for no name.

    Raises:
        LedgerError: It is a connection string of libpq.
    """
    if not named:
        return None
    from nexus_core.ledger.url import refuse_connection_string

    refuse_connection_string(named)
    if re.match(_URL_PATTERN, named, re.IGNORECASE):
        return named
    path = directory / expand_user(named)
    return _SQLITE_PREFIX + str(path.parent.resolve() / path.name)


def find_session(ledger: Ledger, label: str) -> SessionRecord:
    """Return the session of that name, or the only one whose name, else former name, begins so.

    Raises:
        UnknownNameError: There is none. Its hint has the nearest name.
        UsageError: Several sessions have names that begin so.
    """
    record = ledger.session(label)
    if record is not None:
        return record
    records = {record.label: record for record in ledger.sessions(status=None)}
    names = dict(records)
    found = sorted(name for name in names if label and name.startswith(label))
    if not found and label:
        from nexus_core.ledger.queries import find_former_names

        names = {alias: records[name] for alias, name in find_former_names(ledger).items() if name in records}
        found = sorted(name for name in names if name.startswith(label))
    if not found:
        raise UnknownNameError("session", label, [*records, *names])
    is_one = len({names[name].label for name in found}) == 1
    # Workers are named after their makers.
    if not is_one and any(not name.startswith(f"{found[0]}/") for name in found[1:]):
        listed = ", ".join(map(repr, found[:MAX_LISTED_NAMES])) + (", …" if len(found) > MAX_LISTED_NAMES else "")
        raise UsageError(
            f"{len(found):,} sessions have names that begin with {label!r}: {listed}", hint="give more of it"
        )
    return names[found[0]]


def match_session(ledger: Ledger, label: str) -> SessionRecord | None:
    """Return the session as `find_session` does, or None if there is none.

    Raises:
        UsageError: Several sessions have names that begin so.
    """
    try:
        return find_session(ledger, label)
    except UnknownNameError:
        return None


def resolve_session_name(ledger: Ledger, label: str) -> str:
    """Return the full name of a session for the beginning of one, or the text itself if none matches."""
    try:
        return find_session(ledger, label).label
    except UsageError:  # there is none, or several could be meant
        return label


def get_session_names(ledger: Ledger) -> list[str]:
    """Return the names of all sessions of a ledger, archived or not."""
    return [record.label for record in ledger.sessions(status=None)]


def estimate_steps(ledger: Ledger, only: SessionRecord | None = None) -> int:
    """Return the number of steps of a ledger or of one session, for a progress bar; 0 if they cannot be counted."""
    from nexus_core.ledger.queries import count_steps

    try:
        return count_steps(ledger) if only is None else count_steps_to(ledger, only.tip)
    except LedgerUnreachableError:
        raise
    except LedgerError:  # whatever is wrong, the work itself will find it
        return 0


def count_steps_to(ledger: Ledger, tip: str | None) -> int:
    """Return the number of steps up to and including one, or 0 if it is None or missing."""
    end = None if tip is None else ledger.step(tip)
    return 0 if end is None else end.position + 1


def _parse_sqlite_path(url: str) -> Path:
    return expand_user(url.removeprefix(_SQLITE_PREFIX))
