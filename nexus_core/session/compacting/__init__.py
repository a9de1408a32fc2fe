"""Earlier turns give way to a summary.

compact.py       the whole of it; braking.py: when not; recovering.py: the same after a provider refused a call
selecting.py     what is summarised, told from outlining.py: the thread in turns and groups; summarising.py: by whom
covering.py      what a summary stands for; pinning.py: what stays; undoing.py: takes a summary back
"""
