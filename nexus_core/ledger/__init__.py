"""The ledger: the append-only store of sessions and their steps.

store.py         rows with their ids and digests, the JSON and text in them, and the protocol of a store for them
codec.py         encoding of steps as rows and blobs, and steps that are decoded on access
outline.py       roles and tool calls of stored messages, without decoding them
search.py        search in a session, and quotes of what was found, without secrets
ledger.py        StoreLedger: the rules of a ledger over any store, and the reading of threads
senders.py       senders of user messages, and of sessions that were created for others
queries.py       queries over all sessions, in a few statements where the store can
in_memory.py     MemoryLedger (`memory:`), and a ledger for dry runs on top of another
url.py           opening of the ledger that a URL names, and URLs without their passwords
verify.py        detection of rows that were changed, deleted, reordered or damaged
rebuild.py       a new ledger from the intact turns of a damaged one, or without some sessions
deletion.py      deletion of a session: its content is erased, and the deletion is recorded
"""
