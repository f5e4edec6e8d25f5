"""A server for the tests, and one who asks it."""

import http.client
import json
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

# What a test asks for before it does anything else: without the extra it is skipped.
NEEDED = {"modname": "bsufs.app._server", "reason": "the extra 'app' is not installed"}


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
    prepared = pytest.importorskip(**NEEDED).prepared
    with prepared(file, 0, limit) as (server, listening, address):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Client(address)
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()
