"""A local page for those who do not type commands: it composes them, runs them, shows the result.

The page is served to this computer alone. A run is ``bsufs select`` in a process of its own, so
what it writes is what the shell would write, and the command that is shown repeats it.
"""
