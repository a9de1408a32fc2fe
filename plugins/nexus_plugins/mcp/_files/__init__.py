"""Servers as files define them: those of Nexus and of other tools.

finding.py       which files of a layer are read; reader.py: reads them; toml.py: those of Codex, with their lines
dialects.py      how other tools write servers; container.py: what in a file holds them; foreign.py: in our words
references.py    `${TOKEN}` and the like
editing.py       changes one server in a file; templates.py: what a new file begins with
exporting.py     servers in the words of another tool; losses.py: what it would do otherwise
"""
