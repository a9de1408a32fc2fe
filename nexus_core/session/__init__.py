"""Durable conversations: a tool loop in which every step is stored before it counts.

session.py         Session: ask, record, next
async_session.py   the same for async programs
engine.py          the operations behind both, as generators
session_thread.py  a session's steps in its ledger: read, planned, appended under concurrent writers
record.py          replies, tool results and whole turns as steps
options.py         arguments of sessions and requests
workers.py         workers (subagents) and their results
replay.py          a call of the past, rebuilt from the ledger
provenance.py      where a sentence of a session comes from
"""
