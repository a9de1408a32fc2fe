"""What authors of plugins test with.

`check_plugin(plugin)` needs nothing but Nexus. The pytest fixtures are in `nexus_core.testing.fixtures`; a test
module asks for them with `pytest_plugins = ["nexus_core.testing.fixtures"]`.
"""

from nexus_core.testing.check import check_plugin
from nexus_core.testing.trees import write_files

__all__ = ["check_plugin", "write_files"]
