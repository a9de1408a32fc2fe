"""OpenAI's chat completions, and the many servers that speak like it.

dialect.py       all of it as one object
reading.py       from a chat message to a neutral one; writing.py: the way back
parts.py         what content consists of; calls.py: calls of tools; reasoning.py: what servers add about thoughts
marking.py       what its cache may keep
outline.py       its plain shape, to see quickly that nothing is wrong
request.py       the arguments of a call; reply.py: what comes back; stream.py: what comes back in pieces
"""
