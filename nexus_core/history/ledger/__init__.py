"""Conversations as they are kept: what every ledger has in common, and one that keeps them in memory.

ids.py           names that sort by the time they were made
texts.py         text and JSON as they are stored: which characters are replaced; one form for equal content
media.py         pictures and documents inside messages, taken out into blobs and put back
blob_references.py  the blobs that steps, sessions and other blobs refer to, and what each is
rows.py          the records a store keeps, their digests, and the chain
stored.py        a Step that is decoded when it is looked at
store.py         what a place to keep rows must be able to do
ledger.py        StoreLedger: the rules of a ledger, over any such place; growing.py: where a step goes
reading.py       threads and searches; searching.py: what was found, in words without secrets
verifying.py     what was changed, deleted, reordered or damaged
rebuilding.py    a new ledger of what is whole in a damaged one; leaving_out.py: without some sessions
turns_kept.py    which turns that are; steps_joined.py: their steps, over gaps; sessions_kept.py: where sessions stand
deletion.py      deletes a session: erases what only it leads to, and records that
memory.py        MemoryLedger: `memory:`, for tests and for what may be forgotten; TrialLedger: for dry runs
opening.py       the ledger of a url
"""
