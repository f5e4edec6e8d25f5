"""`run` and `reproduce`, in this process and as a person would start them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml
from paper.tests.experiments.small_data import small_spec, write_datasets

from bsufs_paper.cli import reproduce as paper_command
from bsufs_paper.experiments import ResultStore, Status, load_spec

PROGRAM = [sys.executable, "-m", "bsufs_paper"]
# Where workers find the selectors that misbehave.
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = write_datasets(tmp_path / "data")
    monkeypatch.setenv("BSUFS_DATA", str(folder))
    return folder


@pytest.fixture
def spec(tmp_path, data):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(small_spec(datasets=["small"])))
    return path


class TestRun:
    def test_tables_are_written_as_csv_and_nothing_is_done_twice(self, invoke, spec, tmp_path):
        out = tmp_path / "out"
        first = invoke("run", spec, "--out", out, "--jobs", 1)
        assert first.status == 0
        assert first.out == ""
        assert "done" in first.err
        winners = pd.read_csv(out / "winners.csv")
        assert set(winners.method) == {"ALLfea", "Variance", "BSUFS", "FSPCA", "Random"}
        assert len(pd.read_csv(out / "scores.csv")) == 5 * (1 + 2 + 2 + 2 + 2)
        second = invoke("run", spec, "--out", out, "--jobs", 1)
        assert second.status == 0
        assert "nothing was left to do" in second.err

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("name: [", "is not YAML"),
            ("name: x\nrecipe: bake\ndatasets: [small]\nmethods: [{label: BSUFS}]", "recipe must"),
            ("name: x", "must have the field recipe"),
        ],
    )
    def test_a_bad_spec_is_one_line_and_status_2(self, invoke, spec, tmp_path, text, message):
        spec.write_text(text)
        ended = invoke("run", spec, "--out", tmp_path / "out")
        assert ended.status == 2
        assert message in ended.err
        assert len(ended.err.strip().splitlines()) == 1

    def test_without_any_dataset_it_says_so_in_one_line(self, invoke, spec, data, tmp_path):
        (data / "small.npz").unlink()
        ended = invoke("run", spec, "--out", tmp_path / "out", "--jobs", 1, "--quiet")
        assert ended.status == 2
        assert ended.err.startswith("bsufs-paper: error: none of the datasets can be had (small): ")
        assert ended.err.count("\n") == 1
        assert not (tmp_path / "out" / "scores.csv").exists()

    def test_a_folder_of_datasets_is_looked_into_first(self, invoke, spec, data, tmp_path):
        home = tmp_path / "home"
        home.mkdir()
        (data / "small.npz").rename(home / "small.npz")
        words = ("run", spec, "--out", tmp_path / "out", "--jobs", 1, "--data-home", home)
        assert invoke(*words).status == 0

    def test_a_missing_spec_is_named(self, invoke, tmp_path):
        ended = invoke("run", tmp_path / "none.yaml", "--out", tmp_path / "out")
        assert (ended.status, "there is no spec" in ended.err) == (2, True)

    def test_no_scheduler_is_one_line(self, invoke, spec, tmp_path):
        pytest.importorskip("distributed", reason="Dask is not installed")
        ended = invoke("run", spec, "--out", tmp_path, "--scheduler", "tcp://127.0.0.1:9")
        assert ended.status == 2
        assert "no Dask scheduler answers" in ended.err

    def test_ctrl_c_keeps_what_is_done(self, spec, tmp_path):
        flag = tmp_path / "flag"
        hanging = {
            "label": "M",
            "selector": "paper.tests.experiments.misbehaving:Misbehaving",
            "parameters": {"how": "hang", "once": str(flag)},
        }
        spec.write_text(yaml.safe_dump(small_spec(datasets=["small"], methods=[hanging])))
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bsufs_paper",
                "run",
                spec,
                "--out",
                tmp_path / "out",
                "-j",
                "1",
            ],
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        deadline = time.monotonic() + 60
        while not flag.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in errors
        assert "the same command goes on from here" in errors
        statuses = {p.task.kind: p.status for p in ResultStore(tmp_path / "out").parts()}
        assert statuses == {"dataset": Status.DONE, "rank": Status.INTERRUPTED}


class TestPaper:
    @pytest.fixture
    def small_paper(self, data, monkeypatch):
        """Put a small run in the place of the comparison: the datasets are not at hand."""
        spec = small_spec(name="clustering")

        def specs(*, quick):
            return {"clustering": load_spec(dict(spec), quick=quick)}

        monkeypatch.setattr("bsufs_paper.experiments.paper_specs", specs)

    def test_the_ids_are_listed(self, invoke):
        listed = invoke("reproduce", "--list")
        assert listed.status == 0
        for name in ("table-acc", "fig-lambda", "table-recovery"):
            assert name in listed.out

    @pytest.mark.usefixtures("small_paper")
    def test_one_table_gives_a_report_with_its_cells(self, invoke, tmp_path):
        out = tmp_path / "out"
        ended = invoke("reproduce", "--only", "table-acc", "--out", out, "--jobs", 1, "--quick")
        assert ended.status == 0, ended.err
        page = (out / "report.html").read_text(encoding="utf-8")
        assert "ACC of k-means" in page
        assert "Quick run" in page
        assert "Convergence" not in page
        cells = pd.read_csv(out / "cells.csv")
        assert set(cells["item"]) == {"table-acc"}
        assert (out / "summary.md").exists()
        assert str(out) in ended.err

    @pytest.mark.usefixtures("small_paper")
    def test_a_sample_and_the_whole_do_not_share_results(self, invoke, tmp_path):
        for words in (["--quick"], []):
            invoke("reproduce", "--only", "table-acc", "--out", tmp_path / "o", "--jobs", 1, *words)
        assert (tmp_path / "o" / "quick" / "parts").is_dir()
        assert (tmp_path / "o" / "full" / "parts").is_dir()

    def test_a_table_that_needs_no_run_needs_no_data(self, invoke, tmp_path):
        ended = invoke("reproduce", "--only", "table-datasets", "--out", tmp_path)
        assert ended.status == 0
        assert "nothing was left to do" in ended.err

    def test_an_unknown_id_is_answered_with_the_nearest(self, invoke, tmp_path):
        ended = invoke("reproduce", "--only", "table-ac", "--out", tmp_path)
        assert ended.status == 2
        assert "Did you mean 'table-acc'?" in ended.err

    def test_every_item_names_a_run_that_exists(self):
        from bsufs_paper.experiments import paper_specs
        from bsufs_paper.reporting import list_items

        known = {"", *paper_specs()}
        assert {item.run for item in list_items()} <= known
        assert paper_command._protocol([]) == {}
