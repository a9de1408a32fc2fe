"""Something a person should know about what was loaded, about a list of messages or about a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark about a file, a message or a step, with a code by which it can be looked up.

    Attributes:
        code: A stable name: `protected-setting`, `hidden-characters`.
        message: What it is and what follows from it, one sentence without a final period.
        path: The file it is about.
        line: Where in the file; 0 when it is about the whole file.
        column: Where in the line.
        index: The message it is about, by its place in the list, from 0.
        step: The step of a ledger it is about, by its id.
        is_note: Good to know, and no trouble: whoever looks for trouble does not stop for it.
    """

    code: str
    message: str
    path: Path | None = None
    line: int = 0
    column: int = 0
    index: int | None = None
    step: str = ""
    is_note: bool = False

    @property
    def place(self) -> str:
        """The file with line and column, as editors understand it, and the message; "" when it is about neither."""
        file = ":".join([str(self.path or ""), *(str(number) for number in (self.line, self.column) if number)])
        message = "" if self.index is None else f"message {self.index}"
        return ", ".join(filter(None, (file, message)))

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.code}]" if self.place else f"{self.message} [{self.code}]"
