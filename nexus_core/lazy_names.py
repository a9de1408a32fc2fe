"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def make_lazy(
    namespace: dict[str, object], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a module.

    Args:
        namespace: The module's globals, in which a name is cached after its first use.
        homes: By name, its module, or `package.module:attribute` if the module calls it something else.
    """

    def get_attribute(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        module, _, attribute = home.partition(":")
        value = namespace[name] = getattr(import_module(module), attribute or name)
        return value

    def list_names() -> list[str]:
        return sorted({*namespace, *homes})

    return get_attribute, list_names
