"""How each API writes messages, tools, requests and replies, and what it accepts.

finding.py       dialects by name, and which one a list is written in; api_dialect.py: what each of them is made of;
                 offered.py: a plugin's, held to its contract
rules.py         what each API refuses, as data; outline.py: what is in an element, seen without reading it
plain.py         objects of the SDKs become dicts; fields.py: their fields, or an error that says where; notes.py: how
                 something was spelled; media.py: pictures and documents; arguments.py: what a call was made with
requests.py      what an SDK's call is given; marks.py: what in it is marked for a provider's cache; sizes.py: its bytes
pairing.py       ids for calls that have none; merging.py: answers in several elements become one
tools/           definitions of tools in every API's shape
openai/          OpenAI's chat completions, and the many servers that speak like it
responses/       OpenAI's Responses; family.py: what both have in common
anthropic/       Anthropic's Messages
gemini/          Gemini's contents
neutral/         Nexus's own messages, and their form in JSON
transcripts/     conversations that other programs wrote down, read into neutral messages

A package named after a dialect has it as `DIALECT` in its module `dialect`. None of them imports an SDK. Plugins offer
more: `nexus_dialects`.
"""
