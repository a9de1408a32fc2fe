"""From what is said to what is sent.

requesting.py    a request as callers make it; inputs.py: what is said; occasion.py: what is known besides
wording.py       what was said, in words; window.py: what fits into a call of a model
planning.py      what is to be sent, and what has to be written down before; triggering.py: when it is too much;
                 making.py: the call of both what is planned and what is replayed
unsendable.py    when nothing should be sent; large_pieces.py: what takes most where not all fits
"""
