"""The plugin manager: finds plugins, isolates a broken one, and calls each hook.

discovery.py   plugin candidates (bundled, installed, given), and the user's policy about them
bundled.py     manifest of the bundled plugins (generated)
calls.py       the hooks as data, checks of their results, and isolated calls
loader.py      inspection and registration of plugins
manager.py     Host with one typed method per hook, registries of what plugins offer, and the default host
"""
