import http.client
import json
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'app' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'app' is not installed")

from bsufs.app import _jobs
from bsufs.app._server import prepared


class Client:
    """Asks a server as a browser would that has opened its page, unless told otherwise."""

    def __init__(self, address):
        parts = urlsplit(address)
        self.address, self.port = address, parts.port
        self.token = parse_qs(parts.query)["token"][0]
        self.own = {
            "Host": f"127.0.0.1:{self.port}",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Cookie": f"bsufs-{self.port}={self.token}",
        }

    def begin(self, method, path, body, **headers):
        """Send a request, whole or in part; a header that is None is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = self.own | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        if body is not None and "Content-Length" not in sent:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection

    def ask(self, method, path, body=None, **headers):
        """Return status, headers and body."""
        connection = self.begin(method, path, body, **headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return SimpleNamespace(status=answer.status, headers=answer.headers, body=text)

    def post(self, path, document=None):
        return self.ask("POST", path, json.dumps(document).encode())

    def upload(self, name, content):
        return self.ask("PUT", f"/table?name={name}", content)

    def state(self):
        return json.loads(self.ask("GET", "/state").body)

    def until(self, fits, seconds=30):
        """Wait for a state."""
        end = time.monotonic() + seconds
        while not fits(state := self.state()):
            assert time.monotonic() < end, state
            time.sleep(0.02)
        return state


@contextmanager
def live(file=None, limit=10**6):
    with prepared(file, 0, limit) as (server, listening, address):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Client(address)
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()


@pytest.fixture
def client():
    with live() as client:
        yield client


@pytest.fixture
def work(monkeypatch):
    """Let jobs run a script in the place of the worker."""

    def set_script(script):
        monkeypatch.setattr(_jobs, "WORKER", [sys.executable, "-c", script])

    return set_script


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """Write a table with an identifier, a category, a gap, and a name that is markup."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 9)) + 0.3 * rng.normal(size=(40, 9))
    names = [*(f"gene_{i}" for i in range(8)), '"<img src=x onerror=alert(1)>, &amp;"']
    lines = [f"id,{','.join(names)},kind"]
    for i, row in enumerate(X):
        cells = [f"{value:.3f}" for value in row]
        cells[3] = "" if i % 10 == 0 else cells[3]
        lines.append(f"s{i:02},{','.join(cells)},{['red', 'green', 'blue'][i % 3]}")
    path = tmp_path_factory.mktemp("table") / "my table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
