"""What one call of a model is put together from; nothing here writes or waits.

freshness.py       whether files have changed; surroundings.py: the static contexts that are kept until then
static_context.py  role, renderer, tools and static sections of a session; stored_static_context.py: those of the last
                   call, if the disk cannot be read; setup.py: what of the settings is kept for that
tools.py           the caller's and the plugins', without what role and settings forbid
epoch.py           what is frozen, as it is stored; system_context.py: what it was put together from
notices.py         what has changed since the model was told; memories.py: what is told while there is room
sent.py, cut.py    the messages that stay, and where the history begins; fitting.py, cutting.py: what there is room for
hiding.py          pictures and documents that are told in words, because a request would be too large with them
calibration.py     how a provider counts; named_windows.py: how much it said that it reads
call.py            the call itself; placements.py: where each piece comes from; asking_renderer.py: its words
writing.py         the call in an API's shape; writing_later.py: not before somebody asks for it
breakpoints.py     what of a call is cached; options.py: what goes with it
cache_report.py    why a beginning was not found in the cache
difference.py      the first thing by which two calls differ; sides.py: each as a row of pieces
"""
