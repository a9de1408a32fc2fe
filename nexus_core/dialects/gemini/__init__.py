"""Gemini's generateContent.

dialect.py       all of it as one object
reading.py       from a content to a neutral message; writing.py: the way back
parts.py         what a content consists of; media.py: pictures, sound, films, documents; results.py: what functions
                 brought; spelling.py: the two names of each field
outline.py       its plain shape, to see quickly that nothing is wrong
request.py       the arguments of a call; reply.py: what comes back
stream.py        what comes back in pieces; pieces.py: texts and calls in pieces; partial.py: arguments in pieces
"""
