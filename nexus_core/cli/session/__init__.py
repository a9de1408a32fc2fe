"""`nexus session …`: look at conversations, move them, mend them.

group.py      the group itself, and the argument that names a session
<name>.py     one or a few commands each, which add themselves to the group
"""
