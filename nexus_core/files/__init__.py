"""Safe reading and atomic writing.

reading.py      text and bytes of regular files
admission.py    what may be read on behalf of a layer; beneath.py opens it, following no link
tree.py         the files below a directory
ownership.py    who could have written a file; repository.py: what a directory belongs to
places.py       the directories that Nexus itself owns; paths.py: paths that are made once
writing.py      whole files, or nothing; lock.py: one writer at a time
"""
