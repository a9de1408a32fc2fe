"""A session's steps: found, cached, summed up, and projected onto the messages that are sent.

state.py        turns and the state of a session, running totals and costs, and what recording a step returns
cache.py        the newest steps of a thread in memory, with their sizes; long tool results shortened
projection.py   the messages of a thread as they are sent, with a summary in place of earlier turns
calibration.py  how many tokens a provider counts, from what it counted before
lookup.py       steps by id, or by a part of it
"""
