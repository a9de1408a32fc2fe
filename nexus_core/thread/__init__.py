"""A session's steps: found, cached, summed up, and projected onto the messages that are sent.

turns.py            a turn and its steps; RecordedStep and RecordedCall, which `Session.record` returns
state.py            the state of a session, read from its newest step and its record
cache.py            the newest steps of a thread, in memory
lookup.py           steps by id, or by a part of it
totals.py           running totals of turns, tokens and usage
sizes.py            tokens and bytes of steps; long tool results shortened
summary_message.py  the message that replaces earlier turns
projection.py       the messages of a thread as they are sent
append.py           appending under concurrent writers
arguments.py        validation of what callers pass
"""
