import io

from rich.console import Console

from bsufs_paper.experiments import Outcome, Status, Task
from bsufs_paper.experiments.progress import ProgressBar

TASKS = [Task.of("dataset", dataset=name) for name in ("COIL20", "USPS", "LUNG")]


def drawn(terminal):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100)
    with ProgressBar(console) as bar:
        for task in TASKS:
            bar(3, task, None)
        bar(3, TASKS[0], Outcome(Status.DONE))
        bar(3, TASKS[1], Outcome(Status.FAILED, "why"))
        summary = bar.summary()
        bar._progress.refresh()
        bar(3, TASKS[2], Outcome(Status.TIMEOUT, "long"))
    return stream.getvalue(), summary, bar.totals()


def test_a_terminal_shows_what_is_done_running_and_failed():
    text, summary, totals = drawn(True)
    assert "2/3" in text  # and the counts beside it
    assert "1 running, 1 failed" in text
    assert summary == "1 running, 1 failed"
    assert totals == "1 done, 1 failed, 1 timeout"


def test_elsewhere_it_is_quiet():
    text, _, totals = drawn(False)
    assert text == ""
    assert totals == "1 done, 1 failed, 1 timeout"


def test_the_total_grows_from_round_to_round():
    stream = io.StringIO()
    with ProgressBar(Console(file=stream, force_terminal=True, width=100)) as bar:
        bar(1, TASKS[0], None)
        bar(1, TASKS[0], Outcome(Status.DONE))
        bar(3, TASKS[1], None)
        bar(3, TASKS[1], Outcome(Status.DONE))
        bar(3, TASKS[2], None)
        bar(3, TASKS[2], Outcome(Status.DONE))
    assert "3/3" in stream.getvalue()
    assert bar.summary() == ""


def test_with_nothing_to_do_it_says_so():
    assert ProgressBar(Console(file=io.StringIO())).totals() == "nothing was left to do"
