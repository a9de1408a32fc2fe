"""`python -m nexus_core` is `nexus`."""

from nexus_core.cli import main

main()
