"""Files: safe reading, atomic writing, and the directories that Nexus works with.

read.py     text and bytes of regular files, and reading beneath a root without following links
write.py    atomic replacement of files, and locks
places.py   the directories of Nexus, repositories and ownership
tree.py     listing of the files below a directory
"""
