"""Something a person should know about what was loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark about a file, with a code by which it can be looked up.

    Attributes:
        code: A stable name: `protected-setting`, `hidden-characters`.
        message: What it is and what follows from it, one sentence without a final period.
        path: The file it is about.
        line: Where in the file; 0 when it is about the whole file.
        column: Where in the line.
    """

    code: str
    message: str
    path: Path | None = None
    line: int = 0
    column: int = 0

    @property
    def place(self) -> str:
        """The file with line and column, as editors understand it."""
        parts = [str(self.path or ""), *(str(number) for number in (self.line, self.column) if number)]
        return ":".join(parts)

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.code}]" if self.path else f"{self.message} [{self.code}]"
