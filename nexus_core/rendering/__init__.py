"""From sections to text.

labelled.py  the static zone: every section under its heading
current.py   what is said in a turn, with its circumstances
core.py      LABELLED, the renderer that Nexus itself brings, and UNIFIED, the role
"""
