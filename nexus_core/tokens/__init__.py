"""Token counts of texts, messages, tools and media, for each model.

counters.py      the counter for a model, with every text counted once
count_cache.py   counts on disk, shared by all processes of a user
estimator.py     the base class of counters, and estimates without a tokenizer
messages.py      token counts of messages, tools, images and documents
tokenizers.py    helpers for plugins with a tokenizer: import check, pieces of long texts
models.py        context windows and encodings of models, found by name
prices.py        the cost of usage, from the prices of models
"""
