"""How much of a library takes part in a piece of work: its modules, its functions, and calls between modules.

A crossing is a call from one module of the library into another; what lies between them, such as the standard library,
does not matter. Code that runs because something is imported does not count, nor does going on with a generator or a
coroutine, nor does a comprehension, which is a function in some versions of Python only.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType, FrameType

_INLINED = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_RESUMED = 3
"""The bits of the argument of `RESUME` that say that a function goes on."""


class Journey(NamedTuple):
    """What took part.

    Attributes:
        modules: How many modules of the library.
        functions: How many of their functions.
        crossings: How often one of the modules called another.
    """

    modules: int
    functions: int
    crossings: int


class CallWatcher:
    """Counts while a piece of work runs, in all threads that it starts.

    Args:
        packages: The names of the library's packages.
    """

    def __init__(self, packages: Iterable[str]) -> None:
        self._packages = frozenset(packages)
        self._functions: set[CodeType] = set()
        self._modules: set[str] = set()
        self._codes: dict[CodeType, bytes] = {}
        self._importing: dict[int, int] = {}
        self._crossings = 0

    def watch(self, work: Callable[[], object]) -> Journey:
        """Do the work, and say what took part in it."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return Journey(len(self._modules), len(self._functions), self._crossings)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code.co_name == "<module>" and event in {"call", "return"}:
            thread = threading.get_ident()
            self._importing[thread] = self._importing.get(thread, 0) + (1 if event == "call" else -1)
            return
        if event != "call" or self._importing.get(threading.get_ident()) or code.co_name in _INLINED:
            return
        module = self._module_of(frame)
        if not module or self._goes_on(frame, code):
            return
        self._modules.add(module)
        self._functions.add(code)
        caller = frame.f_back
        while caller is not None and not self._module_of(caller):
            caller = caller.f_back
        if caller is not None and self._module_of(caller) != module:
            self._crossings += 1

    def _module_of(self, frame: FrameType) -> str:
        """The module of the library that a frame belongs to; "" for none."""
        name = frame.f_globals.get("__name__") or ""
        return name if isinstance(name, str) and name.partition(".")[0] in self._packages else ""

    def _goes_on(self, frame: FrameType, code: CodeType) -> bool:
        instructions = self._codes.get(code)
        if instructions is None:  # it is a copy each time
            self._codes[code] = instructions = code.co_code
        return bool(instructions[frame.f_lasti + 1] & _RESUMED) if frame.f_lasti >= 0 else False
