"""Conversations that outlive the program: a tool loop in which every step is kept before it counts.

session.py       Session: ask, record, next; async_session.py: the same, awaited; drivers.py: how both run one pipeline
pipeline.py      what each verb does, written once; deciding.py: what is recorded; appending.py: how it is added
thread.py        the steps of a session and how it gets on; state.py: where it stands; options.py: what the caller says
place.py         what all sessions of a Nexus have in common; epochs.py: what is frozen, by its address in the ledger
tail.py          the newest steps, each read once; spending.py: what they cost; numbering.py: how many turns they are
turns.py         what an open turn waits for; recorded.py: what the caller gets of a step
walking.py       back through a thread, a few steps at a time; where a turn ended
inputs.py        what is said; occasion.py: what is known besides
replies.py       what a model answered, in any API's shape; results.py: what tools brought
recording.py     all of these as steps, and never the same one twice; clamping.py: long results are sent in part
weighing.py      what messages take, counted once; window.py: what fits into a call of a model
projecting.py    steps become the messages that are sent; reading.py: no more of them than fit
planning.py      what is to be sent, and what has to be written down before; wording.py: what was said, in words
opening.py       what a Nexus gives its callers; requesting.py: a request as they make it; arguments.py: what they say
replaying.py     what was sent before a reply; caching.py: what became of the provider's cache
explaining.py    where a sentence comes from, and why a step is not sent; unsendable.py: when a whole call should not be
spawning.py      workers, and what they bring back
compacting.py    earlier turns give way to a summary; triggering.py: when; braking.py: when not
recovering.py    the same after a provider refused a call; last_call.py: what that was
selecting.py     what is summarised, told from outlining.py: the thread in turns and groups; summarising.py: by whom
undoing.py       takes that back; covering.py: what a summary stands for; pinning.py: what stays
importing/       transcripts of other programs as sessions; exporting/: sessions as files
"""
