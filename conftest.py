"""What the tests rely on, however they are started."""

import signal


def pytest_configure():
    """Let tests interrupt what they start, also when they run in the background."""
    # A shell lets what it starts in the background ignore Ctrl-C, and that is passed on to the
    # processes that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
