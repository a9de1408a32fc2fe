"""Sessions as a file that goes elsewhere and comes back whole.

lines.py         a session as lines of JSON, every step with its digest
reading.py       such lines, checked: nothing missing, nothing changed
restoring.py     the same steps in another ledger, under the same names
messages.py      only what was said, in the shape of an API
"""
