"""What `nexus doctor` says about the tokeniser."""

from __future__ import annotations

from nexus_core import Finding, NexusError
from nexus_plugins.tiktoken_counter._engines import splintr_differs
from nexus_plugins.tiktoken_counter._tables import FOLDER, ensure_available, read_ranks, tables

_SPLINTR = "tiktoken counts in its place; upgrade or uninstall splintr-rs"


def diagnose() -> list[Finding]:
    """A finding for what is missing or damaged, so that tokens are estimated."""
    consequence = "tokens are estimated"
    try:
        ensure_available()
        import tiktoken  # noqa: F401, PLC0415 - whether it can be
    except (NexusError, ImportError) as error:
        what = error.what if isinstance(error, NexusError) else f"tiktoken cannot be imported: {error}"
        return [Finding("tokenizer-unavailable", f"{what}; {consequence}")]
    findings = []
    for table in dict.fromkeys(table.name for table in tables().values()):
        if splintr_differs(table):
            findings.append(Finding("tokenizer-differs", f"splintr does not count as {table} says: {_SPLINTR}"))
        try:
            read_ranks(tables()[table])
        except NexusError as error:
            path = FOLDER / f"{table}.ranks"
            findings.append(Finding("tokenizer-damaged", f"{error.what}; {consequence}; {error.hint}", path))
    return findings
