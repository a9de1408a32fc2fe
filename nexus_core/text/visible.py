r"""Text as a person is shown it: nothing in it steers the terminal or hides, and it is no longer than it should be.

A file may hold escape sequences that move the cursor, set the window title or reorder what is shown, and characters
without a glyph. Everything Nexus prints passes through here, and every name that a prompt tells: such characters appear
as `\x1b`, `\u202e` or `\u200b`. Joiners, marks and selectors that a script or an emoji needs stay.
"""

from __future__ import annotations

import re

from nexus_core.text.hidden import replace_hidden

# C0 except tab and newline, DEL, C1, line and paragraph separators, bidi controls, surrogates that
# stand for undecodable bytes, a byte order mark inside text, interlinear marks, and the Tags block.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""`text` with every steering or hidden character written as an escape; newlines and tabs stay."""
    return _STEERING.sub(_python_escape, replace_hidden(text, _python_escapes))


def visible_line(text: str) -> str:
    r"""As `visible`, and newlines and tabs too: the result is one line, whatever a name contains."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, longest: int) -> str:
    """`text`, or its beginning and `…`, so that it has no more than `longest` characters."""
    return text if len(text) <= longest else f"{text[: max(longest - 1, 0)]}…"


def visible_json(document: str) -> str:
    r"""A JSON document with every steering or hidden character as a `\u` escape; it parses to the same value."""
    return _STEERING.sub(_json_escape, replace_hidden(document, _json_escapes))


def _python_escapes(run: str) -> str:
    return "".join(map(_write_code, run))


def _python_escape(match: re.Match[str]) -> str:
    return _write_code(match[0])


def _write_code(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:  # noqa: PLR2004 - what two hexadecimal digits can say
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - as above, four


def _json_escape(match: re.Match[str]) -> str:
    return _json_escapes(match[0])


def _json_escapes(run: str) -> str:
    units = run.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
