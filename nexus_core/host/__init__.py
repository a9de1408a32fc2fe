"""The pluggy machine: finds plugins, keeps a broken one from stopping the rest, and answers for each hook.

candidates.py      a plugin before it is loaded
installed.py       candidates from installed distributions
bundled.py         candidates that ship with Nexus (generated)
policy.py          which candidates may load, and what happens when one misbehaves
contract.py        the hook specifications as data
inspection.py      what a plugin implements, and what is wrong with it
answers.py         what each hook's answer must look like
implementation.py  one plugin's side of one hook: isolated, checked, named, timed
blame.py           a plugin that misbehaves is named, and the run goes on or stops
loading.py         candidates in order → registered plugins and a row for each
registry.py        named things, with "did you mean"
host.py            one typed method per hook; default.py: the host of functions that are used without a Nexus
"""
