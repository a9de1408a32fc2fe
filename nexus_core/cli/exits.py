"""What the exit codes of `nexus` mean."""

OK = 0
FINDINGS = 1
"""A check found something, something does not fit, or a defect of ours."""
USAGE = 2
CONFIGURATION = 3
"""A file, setting or plugin must be put right first."""
MISSING_EXTRA = 4
PROVIDER = 5
"""Whoever was asked for a summary could not write one."""
INTERRUPTED = 130
