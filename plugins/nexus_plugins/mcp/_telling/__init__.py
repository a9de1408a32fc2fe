"""What a model and a person are told about servers and their tools; nothing is started for it.

table.py         the servers as the model reads about them; diagnosis.py: what `nexus doctor` says
offering.py      their tools as they are offered; names.py: what they are called then
records.py       what is known of tools, and which of them were approved; shadows.py: servers that take another's place
"""
