"""Nexus as an MCP server.

server.py        the server; wire.py: how it speaks with its client
served.py        what it answers; sessions.py: which sessions there are
"""
