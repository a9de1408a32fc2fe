"""Servers that run: started, spoken with, ended.

links.py         servers that are started when they are needed; link.py: one of them; limits.py: how long it may take
launch.py        what a server is started with; env_file.py: its variables; addresses.py: which are connected to
stdio.py         speaks with a program; lines.py: in lines; processes.py: ends it with all that it started
http.py          speaks with an address; line.py: what is known of either way while it is open; quiet.py: in silence
listing.py       what a server says about its tools; sifting.py: without those that cannot be used
"""
