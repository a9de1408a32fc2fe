"""Counting: who counts, what was counted before, what models take.

counter.py     what all counters have in common
estimator.py   tokens from characters, without a tokeniser
messages.py    the tokens of messages and of tools
media.py       the tokens of pictures and documents; base64_bytes.py: as much of one as that takes
pieces.py      long texts, cut where it does not change the count
memory.py      a counter that counts a text once; cache.py is what it shares with other processes
models.py      what is known of a model
counters.py    the counter for a model; tokenizers.py: whether its package can be imported
"""
