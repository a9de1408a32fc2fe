"""What `nexus diff` is given: steps, sessions, models, files."""

from __future__ import annotations

import os
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.sides import Sendable, sendable_of
from nexus_core.cli.ledger import labels_in, match_session
from nexus_core.errors import UnknownNameError, UsageError, did_you_mean
from nexus_core.session.steps.naming import find_named
from nexus_core.session.steps.walking import walk_back

if TYPE_CHECKING:
    from nexus_core.nexus import Nexus
    from nexus_core.values.ledger import Ledger, Step

KINDS = ("file", "session", "step", "model")
"""What may be said before the name of something, where the name alone does not tell: `session:auth-bug`."""


class Operand(NamedTuple):
    """Something that can be compared.

    Attributes:
        kind: One of `KINDS`; "" for this directory.
        name: Its name.
        conversation: Of a model, the session that it is asked in; "" for none.
    """

    kind: str
    name: str
    conversation: str = ""

    def __str__(self) -> str:
        if not self.kind:
            return "what goes to a model here"
        return f"{self.kind} {self.name}{f' in session {self.conversation}' if self.conversation else ''}"

    def read(self, nexus: Nexus) -> Sendable:
        """The request that it stands for: that of a session, a model or a directory is what would be sent now."""
        if self.kind == "file":
            from nexus_core.cli.request.written import read_written  # noqa: PLC0415 - only for files

            return read_written(nexus, nexus.cwd, self.name)
        if self.kind == "step":
            return sendable_of(nexus.replay(self.name))
        return sendable_of(nexus.assemble(nexus.request(**self._circumstances), must_fit=False))

    @property
    def session(self) -> str:
        """The session whose directory is read; "" for none."""
        return self.name if self.kind == "session" else self.conversation

    @property
    def command(self) -> list[str]:
        """The command that prints it, with everything that is known of it."""
        if self.kind == "step":
            return ["session", "replay", self.name, "--json"]
        named = ((f"--{kind}", name) for kind, name in self._circumstances.items())
        return ["assemble", *chain(*named), "--json"]

    @property
    def _circumstances(self) -> dict[str, Any]:
        """What a request says that is about it."""
        told = {self.kind: self.name, "session": self.session}
        return {kind: name for kind, name in told.items() if name}


def find_operand(nexus: Nexus, given: str) -> Operand:
    """What somebody means: a file goes before a session, a session before a step, a step before a model we know.

    Raises:
        UnknownNameError: There is nothing of that name.
    """
    kind, found, name = given.partition(":")
    if found and kind in KINDS:
        return Operand(kind, name)
    if os.path.isfile(nexus.cwd / given):  # noqa: PTH113 - Path.is_file raises where a name is none
        return Operand("file", given)
    ledger = nexus.ledger
    if ledger.session(given) is not None:
        return Operand("session", given)
    step = find_named(ledger, given)
    if step is not None:
        return Operand("step", step.id)
    models = sorted(name.rstrip("*") for name in nexus.host.models())
    if given in models:
        return Operand("model", given)
    if (record := match_session(ledger, given)) is not None:
        return Operand("session", record.label)
    near = [name for name in models if did_you_mean(given, [name])]
    raise UnknownNameError("file, session, step or model", given, [*labels_in(ledger), *near])


def find_two(nexus: Nexus, a: str, b: str) -> tuple[Operand, Operand]:
    """What somebody means by two; a model beside a session is what it would be sent in that session."""
    first, second = find_operand(nexus, a), find_operand(nexus, b)
    for one, other in ((first, second), (second, first)):
        if one.kind == "session" and other.kind == "model":
            asked = other._replace(conversation=one.name)
            return (first, asked) if other is second else (asked, second)
    return first, second


def call_before(nexus: Nexus, operand: Operand) -> tuple[Operand, Operand]:
    """The last call of a session and the one before it; of a reply, its call and the one before.

    Raises:
        UsageError: There is no call, none before, or it is neither a session nor a step.
    """
    ledger = nexus.ledger
    if operand.kind == "session":
        record = ledger.session(operand.name)
        last = newest_call(ledger, record.tip if record else None)
    elif operand.kind == "step":
        last = find_named(ledger, operand.name)
    else:
        raise UsageError(f"there is nothing to compare {operand} with", hint="nexus diff A B, nexus diff --check A")
    if last is None:
        name = quote(operand.name)
        hint = f"`nexus diff {name} B` takes what would be sent now, `nexus session show {name}` shows what was said"
        raise UsageError(f"Nexus has sent nothing in {operand} yet that was answered", hint=hint)
    before = newest_call(ledger, last.parent)
    if before is None:
        what = "there is only one call in" if operand.kind == "session" else "there is no call before"
        raise UsageError(f"{what} {operand}", hint="nexus diff A B compares any two")
    return Operand("step", before.id), Operand("step", last.id)


def newest_call(ledger: Ledger, tip: str | None) -> Step | None:
    """The newest reply to something that Nexus has sent; None where it was made elsewhere, as all before it was."""
    reply = next((step for step in walk_back(ledger, tip, at_once=50) if step.kind == "reply"), None)
    return reply if reply is not None and reply.data.get("epoch") else None
