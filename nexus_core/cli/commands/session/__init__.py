"""The commands of `nexus session`.

group.py         the group and its table of commands
list.py          session list
show.py          session show
search.py        session search
tree.py          session tree
stats.py         session stats
record.py        session record
record_input.py  the messages, replies and tool results that session record reads
replay.py        session replay
compact.py       session compact, pin and unpin, and session show --compacted
lifecycle.py     session fork, rename, archive, unarchive and delete
import_files.py  session import
import_menu.py   session import without a file, and --watch
export.py        session export
overview.py      numbers of a session from its newest step, and damage found while reading
"""
