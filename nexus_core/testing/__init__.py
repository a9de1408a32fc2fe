"""What authors of plugins test with.

`check_plugin(plugin)` needs nothing but Nexus. The pytest fixtures are in `nexus_core.testing.fixtures`; a test
module asks for them with `pytest_plugins = ["nexus_core.testing.fixtures"]`.

check.py      holds a plugin against the contract; samples.py: what it is told then;
              dialects.py: tries the dialects that it offers
fixtures.py   a home and a Nexus for a test; trees.py: files for it
"""

from nexus_core.testing.check import check_plugin
from nexus_core.testing.trees import write_files

__all__ = ["check_plugin", "write_files"]
