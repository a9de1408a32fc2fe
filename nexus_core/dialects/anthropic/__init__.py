"""Anthropic's Messages.

dialect.py       all of it as one object
reading.py       from one of its messages to a neutral one; writing.py: the way back
blocks.py        what content consists of; media.py: pictures and documents; marking.py: what its cache may keep
outline.py       its plain shape, to see quickly that nothing is wrong
request.py       the arguments of a call; reply.py: what comes back; stream.py: what comes back in pieces
"""
