"""What authors of plugins import besides the values in `nexus_core`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from nexus_core.config.documents import read_document as read_json
from nexus_core.config.documents import read_layer_document as read_layer_json
from nexus_core.config.documents import setting_error
from nexus_core.config.pointers import pointer_to
from nexus_core.errors import ConflictError, ExistsError, LedgerError
from nexus_core.files.admission import Admission, real_path
from nexus_core.files.ownership import is_foreign, owners_beside
from nexus_core.files.paths import file_in
from nexus_core.files.places import defaults_directory
from nexus_core.files.reading import read_bytes, read_text
from nexus_core.files.repository import levels_above, repository_of, repository_root
from nexus_core.text.console import Console
from nexus_core.text.visible import visible, visible_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from nexus_core.config.json_document import JsonDocument as JsonDocument  # noqa: PLC0414 - for annotations of plugins
    from nexus_core.config.schema import Strict
    from nexus_core.history.ledger.ledger import StoreLedger
    from nexus_core.history.ledger.rebuilding import Salvaged
    from nexus_core.history.ledger.rows import AliasRow, BranchRow, HistoryRow, Place, SessionRow, StepRow
    from nexus_core.nexus import Nexus
    from nexus_core.tokens.counter import TextCounter
    from nexus_core.tokens.estimator import estimate
    from nexus_core.tokens.messages import count_messages
    from nexus_core.tokens.pieces import cut_pieces
    from nexus_core.values.budget import GroupSizes as GroupSizes  # noqa: PLC0414 - for annotations of plugins
    from nexus_core.values.declarations import InitScope as InitScope  # noqa: PLC0414 - for annotations of plugins
    from nexus_core.values.ledger import Ledger, NewStep, SessionRecord, Step

__all__ = [
    "Admission",
    "AliasRow",
    "BranchRow",
    "ConflictError",
    "Console",
    "ExistsError",
    "HistoryRow",
    "Ledger",
    "LedgerError",
    "NewStep",
    "Place",
    "Salvaged",
    "SessionRecord",
    "SessionRow",
    "Shell",
    "Step",
    "StepRow",
    "StoreLedger",
    "Strict",
    "TextCounter",
    "count_messages",
    "cut_pieces",
    "defaults_directory",
    "estimate",
    "file_in",
    "is_foreign",
    "levels_above",
    "owners_beside",
    "pointer_to",
    "read_bytes",
    "read_json",
    "read_layer_json",
    "read_text",
    "real_path",
    "repository_of",
    "repository_root",
    "setting_error",
    "visible",
    "visible_line",
]


_ELSEWHERE = {
    "StoreLedger": "nexus_core.history.ledger.ledger",  # and by those who keep conversations
    "Ledger": "nexus_core.values.ledger",
    "NewStep": "nexus_core.values.ledger",
    "SessionRecord": "nexus_core.values.ledger",
    "Step": "nexus_core.values.ledger",
    "Salvaged": "nexus_core.history.ledger.rebuilding",
    "AliasRow": "nexus_core.history.ledger.rows",
    "BranchRow": "nexus_core.history.ledger.rows",
    "HistoryRow": "nexus_core.history.ledger.rows",
    "Place": "nexus_core.history.ledger.rows",
    "SessionRow": "nexus_core.history.ledger.rows",
    "StepRow": "nexus_core.history.ledger.rows",
    "Strict": "nexus_core.config.schema",  # pydantic is imported only by those who declare settings
    "TextCounter": "nexus_core.tokens.counter",  # and these by those who count
    "count_messages": "nexus_core.tokens.messages",
    "cut_pieces": "nexus_core.tokens.pieces",
    "estimate": "nexus_core.tokens.estimator",
}


def __getattr__(name: str) -> object:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)


class Shell(Protocol):
    """What a command of a plugin finds in `ctx.obj`.

    Attributes:
        console: Where to print; data and messages kept apart, control characters made visible.
    """

    console: Console

    @property
    def cwd(self) -> Path:
        """The directory the command is about: `-C DIR`, else the current one."""

    def nexus(self) -> AbstractContextManager[Nexus]:
        """Open a Nexus for `cwd`; problems with plugins are printed, and it is closed at the end."""
