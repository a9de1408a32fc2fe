"""Loads candidates one by one: each inside its own try, so that a broken one is named and the rest go on."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from nexus_core.errors import PluginError
from nexus_core.hookspecs import PROJECT
from nexus_core.host.contract import hooks
from nexus_core.host.implementation import describe, stand_in
from nexus_core.host.inspection import faults, idle, implementations
from nexus_core.values.plugin import PluginInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pluggy

    from nexus_core.host.blame import Blame
    from nexus_core.host.candidates import Candidate
    from nexus_core.values.events import HookCall
    from nexus_core.values.plugin import Status


class Loader:
    """Registers plugins with a pluggy manager and keeps a row for each.

    Args:
        manager: Where hooks are registered.
        blame: Told about plugins that cannot be loaded or misbehave later.
        trace: Told about every answer to a hook, if somebody wants to know.
    """

    def __init__(
        self, manager: pluggy.PluginManager, *, blame: Blame, trace: Callable[[HookCall], None] | None
    ) -> None:
        self._manager = manager
        self._blame = blame
        self._trace = trace
        self._rows: list[PluginInfo] = []
        self._owners: dict[str, Candidate] = {}

    def load(self, candidates: Iterable[Candidate], *, disabled: frozenset[str]) -> tuple[PluginInfo, ...]:
        """Load candidates in the given order; later ones answer first-answer hooks first."""
        for candidate in candidates:
            if candidate.name in self._owners:
                self._refuse_duplicate(candidate)
                continue
            self._owners[candidate.name] = candidate
            if candidate.name in disabled:
                self._add_row(candidate, "disabled", hooks=candidate.hooks or ())
            elif candidate.hooks is not None:
                self._register_unloaded(candidate, candidate.hooks)
            else:
                self._register_loaded(candidate)
        return tuple(self._rows)

    def _refuse_duplicate(self, candidate: Candidate) -> None:
        owner = self._owners[candidate.name]
        self._fail(candidate, f"its name is taken by {owner.label}; it needs another one")

    def _register_unloaded(self, candidate: Candidate, names: tuple[str, ...]) -> None:
        if self._lacks(candidate, candidate.needs):
            return

        def find(name: str) -> Callable[..., object]:
            if name in candidate.constants:
                return candidate.constants[name]
            function: Callable[..., object] = getattr(candidate.load(), name)
            return function

        view = {name: self._stand_in(candidate, name, partial(find, name)) for name in names}
        self._manager.register(_View(view), name=candidate.name)
        self._add_row(candidate, "active", hooks=names)

    def _register_loaded(self, candidate: Candidate) -> None:
        try:
            plugin = candidate.load()
            found = list(faults(plugin))
            functions = implementations(plugin)
            never_called = [] if found else idle(plugin)
            if self._lacks(candidate, getattr(plugin, "NEEDS", None)):
                return
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin may call sys.exit() when imported
            self._fail(candidate, f"it {describe(error)} while it was loaded", cause=error)
            return
        if candidate.origin == "given":
            found += never_called
        if found:
            self._fail(candidate, "; ".join(found))
            return
        self._register(candidate, functions)
        for each in never_called:
            self._blame.note(candidate.label, each)

    def _register(self, candidate: Candidate, functions: dict[str, Callable[..., object]]) -> None:
        view = {
            name: self._stand_in(candidate, name, lambda function=function: function, **_order(function))  # type: ignore[misc]
            for name, function in functions.items()
        }
        self._manager.register(_View(view), name=candidate.name)
        self._add_row(candidate, "active", hooks=tuple(name for name in hooks() if name in view))

    def _stand_in(
        self, candidate: Candidate, name: str, find: Callable[[], Callable[..., object]], **options: bool
    ) -> Callable[..., object]:
        return stand_in(candidate, hooks()[name], find, blame=self._blame, trace=self._trace, **options)

    def _lacks(self, candidate: Candidate, needs: Any) -> bool:  # noqa: ANN401 - a stranger's attribute
        if needs is None:
            return False
        from nexus_core.values.extra import Extra  # noqa: PLC0415 - most plugins need none

        if not isinstance(needs, Extra) or all(map(_is_installed, needs.modules)):
            return False
        self._add_row(candidate, "needs-extra", hooks=candidate.hooks or (), error=f"needs {needs.requirement}")
        return True

    def _fail(self, candidate: Candidate, message: str, cause: BaseException | None = None) -> None:
        self._add_row(candidate, "failed", error=message)
        if candidate.origin == "given":
            raise PluginError(message, plugin=candidate.label) from cause  # whoever passed it can mend it now
        self._blame.put_on(candidate, message, consequence="it is left out", cause=cause)

    def _add_row(
        self, candidate: Candidate, status: Status, *, hooks: tuple[str, ...] = (), error: str | None = None
    ) -> None:
        self._rows.append(
            PluginInfo(
                name=candidate.name,
                distribution=candidate.distribution,
                version=candidate.version,
                bundled=candidate.is_bundled,
                status=status,
                hooks=hooks,
                error=error,
            )
        )


class _View:
    """What pluggy gets to see of a plugin: its stand-ins and nothing else."""

    def __init__(self, functions: dict[str, Callable[..., object]]) -> None:
        self.__dict__.update(functions)

    def __dir__(self) -> list[str]:
        return list(self.__dict__)


def _is_installed(module: str) -> bool:
    """Whether a package can be imported, as `importlib.util` would say it, which every start would have to import."""
    name = module.partition(".")[0]  # asking for a submodule would import its parents
    if name in sys.modules:
        return sys.modules[name] is not None
    return any(finder.find_spec(name, None) is not None for finder in sys.meta_path)


def _order(function: Callable[..., object]) -> dict[str, bool]:
    options: dict[str, Any] = getattr(function, f"{PROJECT}_impl")
    return {"tryfirst": bool(options.get("tryfirst")), "trylast": bool(options.get("trylast"))}
