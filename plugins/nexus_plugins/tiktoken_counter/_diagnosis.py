"""What `nexus doctor` says about the tokeniser."""

from __future__ import annotations

from nexus_core import Finding, NexusError
from nexus_plugins.tiktoken_counter._tables import FOLDER, ensure_available, read_ranks, tables


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
        try:
            read_ranks(tables()[table])
        except NexusError as error:
            path = FOLDER / f"{table}.ranks"
            findings.append(Finding("tokenizer-damaged", f"{error.what}; {consequence}; {error.hint}", path))
    return findings
