"""Counting: who counts, what was counted before, what models take.

counter.py     what all counters have in common
estimator.py   tokens from characters, without a tokeniser
messages.py    the tokens of messages and of tools; media.py of pictures and documents
pieces.py      long texts, cut where it does not change the count
memory.py      a counter that counts a text once; cache.py is what it shares with other processes
models.py      what is known of a model
counters.py    the counter for a model
"""
