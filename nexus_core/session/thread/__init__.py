"""How a session gets on in its ledger, whoever else writes there.

thread.py        reads, plans and appends; reader.py: where the session stands; assembling.py: what it would send
deciding.py      what is recorded, or found to be there already; appending.py: how it is added; last_call.py: to what
"""
