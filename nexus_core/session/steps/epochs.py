"""The epochs of sessions, by their addresses in the ledger; each is read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.epoch import FIRST_VERSION, Epoch, read_epoch, read_view, write_epoch
from nexus_core.assembly.setup import read_setup
from nexus_core.assembly.system_context import system_context
from nexus_core.errors import LedgerError
from nexus_core.ledger.url import without_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.assembly.static_context import StaticContext
    from nexus_core.types.ledger import Ledger
    from nexus_core.types.prompt import Section
    from nexus_core.types.settings import Settings


class MissingBlobError(LedgerError):
    """A blob that a step refers to is gone."""


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
        self._draft: tuple[StaticContext, str, int, Draft] | None = None

    def current(self, before: Epoch | None, standing: StaticContext, reloads: int, now: int) -> Draft:
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

    def begin(self, before: Epoch | None, standing: StaticContext, reloads: int, now: int) -> Draft:
        """A new epoch, with everything as it is now; arguments as above."""
        basis = {**standing.basis, "reloads": reloads}
        name = before.digest if before else ""
        known = self._draft  # others may begin one at the same time, for another session
        if known is None or known[0] is not standing or known[1:3] != (name, reloads):
            version = before.version + 1 if before else FIRST_VERSION
            context = system_context(standing.sections, version=version, now=now)
            content = write_epoch(standing.system, standing.tools, basis, standing.view_digest, context)
            self._draft = known = standing, name, reloads, Draft(read_epoch(content), (standing.view, content))
        return known[3]

    def store(self, blobs: tuple[bytes, ...]) -> None:
        """Keep what a step is going to name."""
        if blobs:
            self._ledger().put_blobs(blobs)

    def read(self, digest: str) -> Epoch:
        """The epoch of that address.

        Raises:
            LedgerError: It is not there.
        """
        found = self._known.get(digest)
        if found is None:
            found = read_epoch(self._blob(digest, "the system prompt, with the tools, of this call"))
            _remember(self._known, digest, found)
        return found

    def find(self, digest: str, view: str = "") -> Epoch | None:
        """The epoch of that address; None before the first, and where it or what the model was told since is gone.

        Args:
            digest: Its address, "" for none.
            view: The address of the sections that the model was told last, "" for those of the epoch.
        """
        if not digest:
            return None
        try:
            epoch = self.read(digest)
            self.view(view or epoch.view)
        except MissingBlobError:
            return None
        return epoch

    def view(self, digest: str) -> tuple[Section, ...]:
        """The sections of that address; none where nothing is known about them."""
        if not digest:
            return ()
        found = self._views.get(digest)
        if found is None:
            found = read_view(self._blob(digest, "a list of the sections that were sent"))
            _remember(self._views, digest, found)
        return found

    def setup(self, digest: str) -> Settings:
        """The settings of that address."""
        found = self._setups.get(digest)
        if found is None:
            found = read_setup(self._blob(digest, "a record of the settings of this call"))
            _remember(self._setups, digest, found)
        return found

    def _blob(self, digest: str, what: str) -> bytes:
        ledger = self._ledger()
        content = ledger.blob(digest)
        if content is None:
            hint = "no command brings it back; the next question starts a new one; `nexus ledger verify` lists all"
            raise MissingBlobError(
                f"{what} is gone: there is no blob {digest}", where=without_secret(ledger.url), hint=hint
            )
        return content


def _remember(known: dict[str, Any], digest: str, found: object) -> None:
    if len(known) >= REMEMBERED:
        known.clear()
    known[digest] = found
