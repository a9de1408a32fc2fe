"""Conversations that other programs kept become sessions.

transcripts.py   brings a transcript into a ledger, once; sources.py: the file itself, kept as it was
planning.py      what is added to which session; threads.py: what is there; marks.py: how both are compared
paths.py         a transcript as paths that leave each other; weights.py: what they take, and how many are too many
weaving.py       what was said becomes turns and steps; runs.py: who speaks when; calls.py: which call a result answers
labels.py        what sessions are called; finding.py: where programs keep the sessions of a directory
times.py         when something was said; tallies.py: what a session consists of, in numbers
"""
