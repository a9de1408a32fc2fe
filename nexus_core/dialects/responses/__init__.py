"""OpenAI's Responses.

dialect.py       all of it as one object
reading.py       from an item to a neutral message; writing.py: the way back
parts.py         what content consists of; calls.py: calls of tools and their results
outline.py       its plain shape, to see quickly that nothing is wrong
request.py       the arguments of a call; reply.py: what comes back, whole or as events
stream.py        what a stream that broke off had brought
"""
