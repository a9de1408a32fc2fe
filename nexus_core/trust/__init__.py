"""What a project's settings may do: approved by the user, exactly as they are.

fingerprint.py  what an approval covers, and how it is shown
mentioning.py   the same in passing, without keys; what waits for a decision
scripts.py      the program that a command starts, and the code of the project that it runs
coverage.py     the bytes of that code, and what is beyond the limits
decisions.py    the format of trust.json, read without believing it
store.py        allow, deny, forget, decide
comparison.py   what changed since an approval
"""
