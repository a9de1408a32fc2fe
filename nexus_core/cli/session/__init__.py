"""`nexus session …`: look at conversations, move them, mend them.

group.py          the group itself, the argument that names a session, the option that names a ledger
commands.py       imports all commands, which add themselves to the group
listing.py        list; overview.py: a session in numbers; searching.py: search
showing.py        show; shown.py: what it prints; telling.py: turns as lines; step_facts.py: steps and calls as JSON
tree.py           tree; branches.py: what grew from one step; drawing.py: that as text
stats.py          stats; sums.py: what steps add up to; sums_shown.py: that as tables
changing.py       fork, rename, archive; deletion.py: delete; pinning.py: pin
compacting.py     compact; compaction_report.py: what it prints; undoing.py: undo, expand
recording.py      record; recorded.py: what it does; given_items.py, items.py: what it is given; keeping.py: how
replaying.py      replay
mending.py        verify, repair, copy
importing.py      import; imported.py, import_report.py: what it does and prints; exporting.py: export
damage.py         what cannot be read, noted while the rest is shown
reading.py        turns from the newest back
"""
