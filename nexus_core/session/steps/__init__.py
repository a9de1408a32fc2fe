"""What the steps of a thread say.

tail.py          the newest steps, each read once; walking.py: further back, a few at a time
turns.py         what an open turn waits for; state.py: where a session stands; recorded.py: what callers get of a step
projecting.py    steps become the messages that are sent; reading.py: no more of them than fit
clamping.py      long results are sent in part; weighing.py: what messages take, counted once
numbering.py     how many turns there are; spending.py: what they cost
epochs.py        what is frozen, by its address in the ledger; naming.py: steps by a part of their name
"""
