"""Findings of `nexus doctor` about tokenizers and rank tables."""

from __future__ import annotations

from nexus_core import Finding, NexusError
from nexus_core.plugin import find_import_error
from nexus_plugins.tiktoken_counter._counter import has_splintr
from nexus_plugins.tiktoken_counter._tables import (
    RANKS_DIRECTORY,
    REINSTALL_TIKTOKEN_HINT,
    load_tables,
    read_ranks,
    require_tiktoken,
)

UNAVAILABLE_CODE = "tokenizer-unavailable"


def diagnose_tokenizers() -> list[Finding]:
    """Return a finding for each tokenizer or table that is missing or damaged."""
    consequence = "tokens are estimated"
    try:
        require_tiktoken()
        _import_tiktoken()
    except NexusError as error:
        return [Finding(UNAVAILABLE_CODE, f"{error.what}; {consequence}; {error.hint}")]
    findings = []
    if has_splintr() and (reason := find_import_error("splintr", "Tokenizer")):
        instead = "tiktoken counts in its place, more slowly; upgrade or uninstall splintr-rs"
        findings.append(Finding(UNAVAILABLE_CODE, f"splintr {reason}; {instead}"))
    for table in dict.fromkeys(table.name for table in load_tables().values()):
        try:
            read_ranks(load_tables()[table])
        except NexusError as error:
            path = RANKS_DIRECTORY / f"{table}.ranks"
            findings.append(Finding("tokenizer-damaged", f"{error.what}; {consequence}; {error.hint}", path))
    return findings


def _import_tiktoken() -> None:
    """Import tiktoken, because `require_tiktoken` does not check the packages that it needs."""
    try:
        from tiktoken import Encoding  # noqa: F401 - only `nexus doctor` needs it
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise NexusError(f"tiktoken cannot be imported: {error}", hint=REINSTALL_TIKTOKEN_HINT) from error
