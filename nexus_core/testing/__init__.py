"""Tests for plugin authors: a check against the contract, and pytest fixtures.

`check_plugin(plugin)` needs nothing but Nexus. The pytest fixtures are in `nexus_core.testing.fixtures`; a test
module asks for them with `pytest_plugins = ["nexus_core.testing.fixtures"]`.

check.py      a plugin's names, signatures, results and dialects against the contract
samples.py    sample files, conversations and calls to test with
fixtures.py   pytest fixtures: an empty home, and a Nexus
"""

from nexus_core.testing.check import check_plugin
from nexus_core.testing.samples import write_files

__all__ = ["check_plugin", "write_files"]
