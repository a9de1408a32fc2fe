"""API dialects: messages, tools, requests, replies and rules of each API.

registry.py          ApiDialect, dialects by name, and detection of a list's dialect
plugin_dialect.py    checked wrapper around a plugin's dialect
rules.py             limits of each API, as data
fields.py            typed access to untrusted JSON, SDK objects and arguments
requests.py          arguments and size of a request body
calls.py             arguments and ids of tool calls
media.py             images and files
cache_markers.py     prompt-cache markers
tools.py             tool definitions
openai.py            OpenAI's Chat Completions and compatible servers
responses.py         OpenAI's Responses
anthropic.py         Anthropic's Messages
gemini.py            Gemini's generateContent
gemini_stream.py     merging of Gemini's streamed replies
neutral.py           the neutral format of Message objects

Each API's module defines its dialect as `DIALECT` and imports no SDK. Plugins add dialects with `nexus_dialects`.
"""
