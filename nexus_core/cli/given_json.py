"""JSON that a command is given, with the place of whatever is wrong in it."""

from __future__ import annotations

import json
import re
import sys
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.config.documents import syntax_error
from nexus_core.config.lines import Lines
from nexus_core.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def parse_json(path: Path, part: str, text: str, line: int = 0) -> Any:  # noqa: ANN401 - what JSON may say
    """What a text says.

    Args:
        path: The file, for errors.
        part: What is to be read: the file, or a line of it.
        text: The whole file.
        line: How many lines stand before.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It is nested too deeply.
    """
    try:
        return json.loads(part, parse_constant=_refuse, parse_float=_finite)
    except _ConstantError as error:
        what = "is too large a number" if str(error)[-1].isdigit() else "is not JSON"
        message, offset = f"{error} {what}", part.find(str(error))
    except json.JSONDecodeError as error:
        message, offset = error.msg, error.pos
    except ValueError:  # Python reads no more digits than it prints
        most = sys.get_int_max_str_digits()
        message, offset = f"a number has more than {most} digits", _place_of_digits(part, most + 1)
    except RecursionError:
        raise FileError("nested too deeply", where=str(path)) from None
    lines = Lines(text)
    place = Lines(part).position(offset)
    # What a command is given is no setting.
    raise syntax_error(path, lines, (line + place.line, place.column), message, heading="Error")


def parse_lines(path: Path, text: str) -> Iterator[tuple[int, Any]] | None:
    """What each line of a text says, with its number from 1; None where the text is not one object on each line.

    Raises:
        ConfigError: A line is not JSON; shows where.
        FileError: One is nested too deeply.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n")) if line.strip()]
    if len(lines) < 2 or not _is_object(lines[0][1]):  # noqa: PLR2004 - one line may be anything
        return None
    return ((number + 1, parse_json(path, line, text, number)) for number, line in lines)


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _place_of_digits(text: str, count: int) -> int:
    found = re.search(rf"[0-9]{{{count}}}", text)
    return found.start() if found else 0


class _ConstantError(ValueError):
    """NaN, Infinity, or a number that would become one."""


def _finite(number: str) -> float:
    value = float(number)
    return value if isfinite(value) else _refuse(number)


def _refuse(constant: str) -> NoReturn:
    raise _ConstantError(constant)
