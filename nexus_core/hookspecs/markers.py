"""What marks a function as a hook: `hookspec` in the contract, `hookimpl` in a plugin."""

import pluggy

PROJECT = "nexus"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
