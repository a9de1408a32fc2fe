"""Conversations that outlive the program: a tool loop in which every step is kept before it counts.

session.py       Session: ask, record, next; async_session.py: the same, awaited; drivers.py: how both run one pipeline
pipeline.py      what each verb does, written once
thread.py        where a session stands and how it gets on; place.py: what it needs of the Nexus it belongs to
tail.py          the newest steps, each read once; spending.py: what they cost; numbering.py: how many turns they are
turns.py         what an open turn waits for; recorded.py: what the caller gets of a step
walking.py       back through a thread, a few steps at a time; where a turn ended
inputs.py        what is said; replies.py: what a model answered, in any API's shape; results.py: what tools brought
recording.py     all of these as steps, and never the same one twice; clamping.py: long results are sent in part
weighing.py      what messages take
projecting.py    steps become the messages that are sent
epochs.py        system prompt and tools, frozen while nobody changes them
assembling.py    what one call is made of, within the model's window; fitting.py: what of the history fits
"""
