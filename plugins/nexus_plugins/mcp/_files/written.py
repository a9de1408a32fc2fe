"""What is written out in a file although a reference would keep it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.plugin import secrets_in
from nexus_plugins.mcp._files.references import SCHEME, references_in, without_references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def written_out(entry: Mapping[str, Any]) -> Iterator[str]:
    """What looks like a secret in what is said about a server: where it stands, never what it is."""
    if any(secrets_in(entry.get("command") or [])):
        yield "a key in its command"
    if any(secrets_in([entry.get("url") or ""])):
        yield "a key in its address"
    values = [(name, value) for table in ("env", "headers") for name, value in (entry.get(table) or {}).items()]
    for name, value in values:
        refers = any(references_in(value)) and SCHEME.fullmatch(without_references(value)) is not None
        has_default = any(each.default for each in references_in(value))
        if any(secrets_in([f"{name}={value}"])) and (has_default or not refers):
            yield f"the {'default' if refers else 'value'} of {name}"
