"""What `nexus doctor` says about the tokeniser."""

from __future__ import annotations

from nexus_core import Finding, NexusError
from nexus_core.plugin import find_import_error
from nexus_plugins.tiktoken_counter._engines import has_splintr
from nexus_plugins.tiktoken_counter._tables import FOLDER, REINSTALL_TIKTOKEN, ensure_available, read_ranks, tables

UNAVAILABLE = "tokenizer-unavailable"


def diagnose() -> list[Finding]:
    """Return a finding for each tokenizer or table that is missing or damaged."""
    consequence = "tokens are estimated"
    try:
        ensure_available()
        _import_tiktoken()
    except NexusError as error:
        return [Finding(UNAVAILABLE, f"{error.what}; {consequence}; {error.hint}")]
    findings = []
    if has_splintr() and (reason := find_import_error("splintr", "Tokenizer")):
        instead = "tiktoken counts in its place, more slowly; upgrade or uninstall splintr-rs"
        findings.append(Finding(UNAVAILABLE, f"splintr {reason}; {instead}"))
    for table in dict.fromkeys(table.name for table in tables().values()):
        try:
            read_ranks(tables()[table])
        except NexusError as error:
            path = FOLDER / f"{table}.ranks"
            findings.append(Finding("tokenizer-damaged", f"{error.what}; {consequence}; {error.hint}", path))
    return findings


def _import_tiktoken() -> None:
    """Import it now: what was found out before does not cover the packages that it needs."""
    try:
        from tiktoken import Encoding  # noqa: F401, PLC0415 - only `nexus doctor` needs it
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise NexusError(f"tiktoken cannot be imported: {error}", hint=REINSTALL_TIKTOKEN) from error
