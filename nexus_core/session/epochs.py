"""The epochs of sessions, by their addresses in the ledger; each is read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.epoch import FIRST_VERSION, Epoch, read_epoch, read_view, write_epoch
from nexus_core.assembly.setup import read_setup
from nexus_core.assembly.system_context import system_context
from nexus_core.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.assembly.standing import Standing
    from nexus_core.values.ledger import Ledger
    from nexus_core.values.section import Section
    from nexus_core.values.settings import Settings

REMEMBERED = 64
"""So many epochs and views are remembered."""


class Draft(NamedTuple):
    """An epoch, and what has to be stored before a step may name it; nothing for one that goes on."""

    epoch: Epoch
    blobs: tuple[bytes, ...] = ()


class Epochs:
    """Reads epochs and begins new ones.

    Args:
        ledger: Gives the ledger.
    """

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._known: dict[str, Epoch] = {}
        self._views: dict[str, tuple[Section, ...]] = {}
        self._setups: dict[str, Settings] = {}
        self._draft: tuple[Standing, str, int, Draft] | None = None

    def current(self, before: Epoch | None, standing: Standing, reloads: int, now: int) -> Draft:
        """The epoch that goes on, or a new one: the first, or because something counts at once.

        Args:
            before: The epoch so far.
            standing: What stands around the session now.
            reloads: How often the session was told to begin a new one.
            now: The time, in milliseconds since 1970.
        """
        basis = {**standing.basis, "reloads": reloads}
        if before is not None and before.basis == basis and before.tools == standing.tools:
            return Draft(before)
        return self.begin(before, standing, reloads, now)

    def begin(self, before: Epoch | None, standing: Standing, reloads: int, now: int) -> Draft:
        """A new epoch, with everything as it is now; arguments as above."""
        basis = {**standing.basis, "reloads": reloads}
        name = before.digest if before else ""
        if self._draft is None or self._draft[0] is not standing or self._draft[1:3] != (name, reloads):
            version = before.version + 1 if before else FIRST_VERSION
            context = system_context(standing.sections, version=version, now=now)
            content = write_epoch(standing.system, standing.tools, basis, standing.view_digest, context)
            self._draft = standing, name, reloads, Draft(read_epoch(content), (standing.view, content))
        return self._draft[3]

    def store(self, blobs: tuple[bytes, ...]) -> None:
        """Keep what a step is going to name."""
        if blobs:
            self._ledger().put_blobs(blobs)

    def read(self, digest: str) -> Epoch:
        """The epoch of that address.

        Raises:
            LedgerError: It is not there.
        """
        if digest not in self._known:
            _make_room(self._known)
            self._known[digest] = read_epoch(self._blob(digest, "the system prompt of this session"))
        return self._known[digest]

    def view(self, digest: str) -> tuple[Section, ...]:
        """The sections of that address; none where nothing is known about them."""
        if not digest:
            return ()
        if digest not in self._views:
            _make_room(self._views)
            self._views[digest] = read_view(self._blob(digest, "what this session was told"))
        return self._views[digest]

    def setup(self, digest: str) -> Settings:
        """The settings of that address."""
        if digest not in self._setups:
            _make_room(self._setups)
            self._setups[digest] = read_setup(self._blob(digest, "what the settings of this session were"))
        return self._setups[digest]

    def _blob(self, digest: str, what: str) -> bytes:
        ledger = self._ledger()
        content = ledger.blob(digest)
        if content is None:
            raise LedgerError(
                f"{what} is missing: there is no blob {digest}",
                where=ledger.url,
                hint="`nexus session verify` says what else is missing",
            )
        return content


def _make_room(known: dict[str, Any]) -> None:
    if len(known) >= REMEMBERED:
        known.clear()
