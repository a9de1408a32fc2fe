"""Where a new step goes, and what follows from its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from nexus_core.errors import LedgerError, UnknownNameError
from nexus_core.history.ledger.rows import StepRow, chain_of, digest_of
from nexus_core.history.ledger.stored import pack_messages
from nexus_core.history.ledger.texts import clean, write_json
from nexus_core.values.ledger import StepKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.history.ledger.rows import Place
    from nexus_core.values.ledger import NewStep

MOST_TOKENS = 1 << 53
"""As far as whole numbers are the same in every reader of JSON."""
_KINDS = get_args(StepKind)


class Draft(NamedTuple):
    """A step that is ready to be stored, but for its place.

    Attributes:
        id: Its name.
        created: When it was made.
        kind, closes, messages, tokens, counter, data: As they are stored.
        restores: The compaction that counts after a revert.
        blobs: What its messages refer to.
    """

    id: str
    created: int
    kind: str
    closes: int
    messages: str
    tokens: int
    counter: str
    data: str
    restores: str | None
    blobs: dict[str, bytes]


def draft(step: NewStep, name: str, created: int) -> Draft:
    """A step in the form in which it is stored.

    Raises:
        LedgerError: It cannot be stored: something in it is no JSON, or a number is out of range.
        MessageError: A message could not be read again: a field of it is of another type, or nested too deeply.
    """
    if step.kind not in _KINDS:
        raise UnknownNameError("kind of step", str(step.kind), _KINDS)
    if type(step.tokens) is not int or not 0 <= step.tokens < MOST_TOKENS:
        raise LedgerError(f"a step cannot have {step.tokens} tokens", hint="count again")
    restores = step.data.get("restores")
    if restores is not None and not isinstance(restores, str):
        raise LedgerError("`restores` is not the id of a step", hint="name the compaction that counts again, or None")
    messages, blobs = pack_messages(step.messages)
    return Draft(
        id=name,
        created=created,
        kind=step.kind,
        closes=int(step.closes),
        messages=messages,
        tokens=step.tokens,
        counter=clean(step.counter),
        data=write_json(dict(step.data)),
        restores=restores,
        blobs=blobs,
    )


def lined_up(drafts: Iterable[Draft], parent: Place | None, *, turn: str | None, branch: str) -> list[StepRow]:
    """The rows of steps that follow each other behind another; arguments as for `placed`."""
    rows: list[StepRow] = []
    before: Place | StepRow | None = parent
    for new in drafts:
        row = placed(new, before, turn=turn, branch=branch)
        turn = None if row.closes else row.turn
        rows.append(row)
        before = row
    return rows


def placed(new: Draft, parent: Place | StepRow | None, *, turn: str | None, branch: str) -> StepRow:
    """The row of a step behind another.

    Args:
        new: What is added.
        parent: The step before it.
        turn: The open turn; None when it opens one, which then has its name.
        branch: The line it stands in.
    """
    row = StepRow(
        id=new.id,
        parent=parent.id if parent else None,
        turn=turn or new.id,
        branch=branch,
        position=parent.position + 1 if parent else 0,
        kind=new.kind,
        closes=new.closes,
        messages=new.messages,
        tokens=new.tokens,
        counter=new.counter,
        data=new.data,
        total=total_of(new.tokens, new.counter, parent),
        compaction=compaction_of(new.id, new.kind, new.restores, parent),
        created=new.created,
        digest="",
        chain="",
    )
    digest = digest_of(row)
    return StepRow(*row[:-2], digest, chain_of(parent.chain if parent else "", digest))


def total_of(tokens: int, counter: str, parent: Place | StepRow | None) -> int:
    """The running sum: one counter's tokens are not added to another's."""
    return tokens + (parent.total if parent and parent.counter == counter else 0)


def compaction_of(name: str, kind: str, restores: str | None, parent: Place | StepRow | None) -> str | None:
    """The compaction that counts from a step on."""
    if kind == "compaction":
        return name
    if kind == "revert":
        return restores
    return parent.compaction if parent else None
