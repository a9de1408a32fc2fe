"""Approval of settings that start programs or open connections.

store.py        the user's decisions in trust.json
fingerprint.py  the content of a setting that an approval covers
scripts.py      the program that a command starts, and the project's code that it runs
coverage.py     digests of that code, and the files beyond the limits
report.py       summaries of active settings without secrets, and diffs
"""
