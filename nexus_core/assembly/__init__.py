"""What one call of a model is put together from; nothing here writes or waits.

freshness.py       whether files have changed; surroundings.py, standing.py: what holds around a conversation until then
frozen_standing.py what held when something was last sent; setup.py: what of the settings is kept for that
tools.py           the caller's and the plugins', without what role and settings forbid
epoch.py           what is frozen, as it is stored; system_context.py: what it was put together from
notices.py         what has changed since the model was told; memories.py: what is told while there is room
sent.py, cut.py    the messages that stay, and where the history begins; calibration.py: how a provider counts;
                   named_windows.py: how much it said that it reads
call.py            the call itself; placements.py: where each piece comes from
writing.py         the call in an API's shape; breakpoints.py: what of it is cached; options.py: what goes with it
cache_report.py    why a beginning was not found in the cache
"""
