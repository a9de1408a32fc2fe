"""Regular expressions of the project, and hostile texts that are derived from each."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]  # the parser of `re`, which has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"nexus_core": ROOT, "plugins/nexus_plugins": ROOT / "plugins"}
SEARCHING = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
PREFERENCES = ("a0 ", "0a-", " \n\t", "\"'\\", "-_.:/=<")
"""Characters that are tried first where several match, so that neighbouring repetitions match the same."""
OTHERS = "".join(map(chr, range(32, 127))) + "\n\t\u0301\u200b"
LONG_REPEAT = 8
MAX_TEXTS = 24
"""Texts for each expression; what comes later differs in one alternative only."""


class UsedPattern(NamedTuple):
    """An expression of a module.

    Attributes:
        name: The module and the name in it.
        pattern: The expression, compiled.
        searches: True if it is searched for everywhere in a text, False if it is matched in one place only.
    """

    name: str
    pattern: re.Pattern[str]
    searches: bool


def list_modules() -> list[str]:
    """Return the modules that have a regular expression among their constants."""
    return [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for folder, root in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if _has_patterns(path.read_text(encoding="utf-8"))
    ]


def _has_patterns(source: str) -> bool:
    return "re.compile(" in source or ("import re\n" in source and bool(find_passed_names(source)))


def find_patterns(module_name: str) -> Iterator[UsedPattern]:
    """Yield the expressions that a module has in its constants, however deep in tuples and dicts."""
    module = importlib.import_module(module_name)
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    searched = _find_searched_names(source)
    for name, searches in find_passed_names(source).items():
        if isinstance(value := vars(module).get(name), str):
            yield UsedPattern(f"{module_name}.{name}", re.compile(value), searches)
    seen: set[int] = set()
    for name, value in vars(module).items():
        for place, pattern in enumerate(_find_compiled(value)):
            if id(pattern) not in seen and isinstance(pattern.pattern, str):
                seen.add(id(pattern))
                yield UsedPattern(f"{module_name}.{name}" + (f"[{place}]" if place else ""), pattern, name in searched)


def _find_searched_names(source: str) -> set[str]:
    return {
        node.value.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in SEARCHING and isinstance(node.value, ast.Name)
    }


def find_passed_names(source: str) -> dict[str, bool]:
    """Return the names of the strings that functions of `re` compile, and whether these search for them everywhere."""
    found: dict[str, bool] = {}
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        module, first = node.func.value, node.args[0]
        if isinstance(module, ast.Name) and module.id == "re" and isinstance(first, ast.Name):
            found[first.id] = found.get(first.id, False) or node.func.attr in SEARCHING | {"compile"}
    return found


def _find_compiled(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _find_compiled(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _find_compiled(each)


def write_hostile_texts(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Yield texts of such a length that match the beginning of an expression again and again, and fail at the end.

    Each repetition is fed with more of what it repeats, behind the least that leads to it.
    """
    pumps: dict[tuple[str, str], None] = {}
    tree = parser.parse(pattern.pattern, pattern.flags)
    for preferred in PREFERENCES:
        for before, body in _find_repeats(tree, preferred):
            pumps[before, body] = None
            pumps["", before + body] = None
        pumps["", _write_least(tree, preferred)] = None
    for before, body in list(pumps)[:MAX_TEXTS]:
        if body:
            yield (before + body * (length // len(body) + 1))[:length] + "\x00"


def _find_repeats(tree: Any, preferred: str) -> Iterator[tuple[str, str]]:
    before = ""
    for code, argument in tree:
        for inner in _find_inner(code, argument):
            for lead, body in _find_repeats(inner, preferred):
                yield before + lead, body
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT) and argument[1] > LONG_REPEAT:
            yield before, _write_least(argument[2], preferred)
        before += _write_one(code, argument, preferred)


def _find_inner(code: Any, argument: Any) -> list[Any]:
    if code is codes.BRANCH:
        return list(argument[1])
    if code is codes.SUBPATTERN:
        return [argument[3]]
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [argument[2]]
    if code is codes.ATOMIC_GROUP:
        return [argument]
    if code is codes.ASSERT:
        return [argument[1]]
    return []


def _write_least(tree: Any, preferred: str) -> str:
    return "".join(_write_one(code, argument, preferred) for code, argument in tree)


def _write_one(code: Any, argument: Any, preferred: str) -> str:
    if code is codes.LITERAL:
        return chr(argument)
    if code is codes.NOT_LITERAL:
        return next(sign for sign in preferred + OTHERS if ord(sign) != argument)
    if code is codes.ANY:
        return preferred[0] if preferred[0] != "\n" else "a"
    if code is codes.IN:
        return _choose_character(tuple(argument), preferred)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return str(_write_least(argument[2], preferred) * argument[0])
    inner = _find_inner(code, argument)
    return _write_least(inner[0], preferred) if inner and code is not codes.ASSERT else ""


@cache
def _choose_character(items: tuple[Any, ...], preferred: str) -> str:
    negated = bool(items) and items[0][0] is codes.NEGATE
    wanted = items[1:] if negated else items
    first = [chr(value) for code, value in wanted if code is codes.LITERAL]
    candidates = (preferred + "".join(first) + OTHERS) if not negated else preferred + OTHERS
    ranges = [chr(value[0]) for code, value in wanted if code is codes.RANGE]
    for sign in [*candidates, *ranges]:
        if any(_matches(code, value, sign) for code, value in wanted) != negated:
            return str(sign)
    return ""


def _matches(code: Any, value: Any, sign: str) -> bool:
    if code is codes.LITERAL:
        return bool(ord(sign) == value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    tests = {
        codes.CATEGORY_DIGIT: sign.isdigit(),
        codes.CATEGORY_NOT_DIGIT: not sign.isdigit(),
        codes.CATEGORY_SPACE: sign.isspace(),
        codes.CATEGORY_NOT_SPACE: not sign.isspace(),
        codes.CATEGORY_WORD: sign.isalnum() or sign == "_",
        codes.CATEGORY_NOT_WORD: not (sign.isalnum() or sign == "_"),
    }
    return tests.get(value, False)
