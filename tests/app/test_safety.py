"""Who may ask, and for what."""

import json
import os
import stat

import pytest
from tests.app.server import NEEDED, live

from bsufs.app import _session

_server = pytest.importorskip(**NEEDED)

# A worker that goes on until it is ended.
ENDLESS = "import time; time.sleep(60)"
# A worker that has read a table at once.
READS = """
import json, pathlib, sys
pathlib.Path(sys.argv[3]).write_text(json.dumps({"names": ["a", "b"], "kinds": ["number"] * 2,
    "memory": 1, "can_stream": True}))
"""
COMMANDS = [("GET", "/state"), ("GET", "/columns"), ("GET", "/report"),
            ("GET", "/settings"), ("GET", "/files/output"),
            ("PUT", "/table?name=a.csv"), ("PUT", "/groups"), ("POST", "/run"), ("POST", "/read"),
            ("POST", "/cancel"), ("GET", "/app.js"), ("GET", "/nothing")]  # fmt: skip


def test_without_the_token_nothing_is_answered(client):
    for cookie in (None, "", f"bsufs-{client.port}=wrong", f"bsufs-1={client.token}"):
        for method, path in [("GET", "/"), ("GET", "/?token=wrong"), *COMMANDS]:
            answer = client.ask(method, path, b"" if method != "GET" else None, Cookie=cookie)
            assert answer.status == 403
            assert b"token" in answer.body
            assert client.token.encode() not in answer.body
            assert "set-cookie" not in answer.headers
    # In an address it is for the page alone.
    assert client.ask("GET", f"/state?token={client.token}", Cookie=None).status == 403


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_gets(client):
    answer = client.ask("GET", f"/?token={client.token}", Cookie=None, Origin=None)
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert cookie == f"bsufs-{client.port}={client.token}; HttpOnly; SameSite=Strict; Path=/"
    assert client.ask("GET", "/", Origin=None).status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil", ""])
def test_no_foreign_name_leads_here(client, host):
    host = host.replace(":1", f":{client.port + 1}")
    for method, path in [("GET", f"/?token={client.token}"), *COMMANDS]:
        answer = client.ask(method, path, b"" if method != "GET" else None, Host=host)
        # Without a name at all, the server itself refuses.
        assert answer.status in (421, 400)


def test_localhost_is_a_name_of_this_computer(client):
    host = f"localhost:{client.port}"
    assert client.ask("GET", "/state", Host=host, Origin=None).status == 200
    assert client.ask("POST", "/cancel", Host=host, Origin=f"http://{host}").status == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1", "own+1"]
)
def test_only_the_page_itself_changes_something(client, origin):
    if origin == "own+1":
        origin = f"http://127.0.0.1:{client.port + 1}"
    for method, path in COMMANDS:
        if method != "GET":
            assert client.ask(method, path, b"{}", Origin=origin).status == 403
        elif origin is not None:
            assert client.ask(method, path, Origin=origin).status == 403


def test_other_sites_can_neither_embed_nor_read(client):
    for site in ("cross-site", "same-site"):
        assert client.ask("GET", "/state", Origin=None, Sec_Fetch_Site=site).status == 403
    headers = client.ask("GET", "/").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_it_listens_to_this_computer_alone():
    with _server.prepared(None, 0, 10) as (_, listening, _address):
        assert listening.getsockname()[0] == "127.0.0.1"


def test_the_page_asks_for_nothing_from_elsewhere(client):
    for path in _server._ASSETS:
        text = client.ask("GET", path).body.decode()
        assert "//" not in text.replace("// ", "").replace("http://www.w3.org", "")
        assert "innerHTML" not in text
        assert "style=" not in text


def _folders(monkeypatch, tmp_path):
    monkeypatch.setattr(_server.tempfile, "tempdir", str(tmp_path))
    return lambda: [path for path in tmp_path.rglob("*") if path.is_file()]


def test_uploads_are_private_keep_no_path_and_go_with_the_app(work, tmp_path, monkeypatch):
    work(READS)
    files = _folders(monkeypatch, tmp_path)
    names = {"..%2F..%2Fetc%2Fpasswd.csv": "etc_passwd.csv", "C%3A%5Cx%5Cy.CSV.GZ": "C_x_y.csv.gz",
             "a%00b%0A%3Cb%3E.tsv": "a_b_b.tsv", "-rf.csv": "rf.csv",
             f"{'x' * 300}.parquet": f"{'x' * 80}.parquet", "%C3%A9t%C3%A9.csv": "été.csv",
             "%E2%80%AEfdp.csv": "fdp.csv"}  # fmt: skip
    with live() as client:
        for name, stored in names.items():
            assert client.upload(name, b"a,b\n1,2\n").status == 200
            client.until(lambda state: state["reading"]["status"] == "done")
            assert stored in {path.name for path in files()}
        # The tables before it are gone.
        assert len(files()) == 2
        (folder,) = tmp_path.iterdir()
        for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            if os.name == "posix":
                assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_table_by_its_name_is_not_taken(client, work):
    work(READS)
    for name in ("a.exe", "a", "", "a.csv.exe", "a.loom", ".csv"):
        answer = client.upload(name, b"a,b\n1,2\n")
        assert answer.status == 400
        assert "extension" in json.loads(answer.body)["error"]
    assert client.state()["table"] is None


def test_a_limit_on_the_size(work, tmp_path, monkeypatch):
    work(READS)
    files = _folders(monkeypatch, tmp_path)
    with live(limit=1000) as client:
        assert client.upload("a.csv", b"x" * 1000).status == 200
        client.until(lambda state: state["reading"]["status"] == "done")
        kept = files()
        answer = client.upload("b.csv", b"x" * 1001)
        assert answer.status == 413
        assert "1.0 KB" in json.loads(answer.body)["error"]
        # Nor where the length is not said before.
        chunks = b"".join(b"3e8\r\n" + b"x" * 1000 + b"\r\n" for _ in range(3)) + b"0\r\n\r\n"
        sent = {"Content_Length": None, "Transfer_Encoding": "chunked"}
        answer = client.ask("PUT", "/table?name=c.csv", chunks, **sent)
        assert answer.status == 413
        assert files() == kept
        assert client.state()["table"]["name"] == "a.csv"


def test_an_upload_that_breaks_off_leaves_nothing(client, work):
    connection = client.begin("PUT", "/table?name=a.csv", b"half of it", Content_Length="1000")
    client.until(lambda state: state["uploading"])
    assert client.upload("b.csv", b"a,b\n").status == 409
    connection.close()
    state = client.until(lambda state: not state["uploading"])
    assert state["table"] is None


NONSENSE = [
    [], 1, {"k": 5}, {"k": "-1"}, {"k": "5 --force"}, {"purpose": "x"}, {"path": "/etc/passwd"},
    {"roles": {"a": "output"}}, {"roles": {"a": "label", "b": "label"}}, {"seed": -1},
    {"seed": True}, {"roles": {"a\nb": "ignore"}}, {"roles": {" ": "ignore"}}, {"scale": "x"},
    {"roles": {"a\0": "ignore"}}, {"roles": {"a": 1}}, {"missing": "error"}, {"report": 1},
]  # fmt: skip


def test_requests_that_make_no_sense_start_nothing(work, client):
    work(READS)
    client.upload("a.csv", b"a,b\n1,2\n")
    client.until(lambda state: state["reading"]["status"] == "done")
    for document in NONSENSE:
        answer = client.post("/run", document)
        assert answer.status == 400, document
        assert json.loads(answer.body)["error"]
        assert client.state()["run"] is None


def test_requests_that_are_no_json_or_too_large(client):
    assert client.ask("POST", "/read", b"\xff{").status == 400
    assert client.ask("POST", "/run", b" " * (2**23 + 1)).status == 413


def test_one_thing_at_a_time(work, client):
    assert client.post("/run", {}).status == 409
    assert client.ask("PUT", "/groups", b"a,b\n").status == 409
    work(ENDLESS)
    assert client.upload("a.csv", b"a,b\n1,2\n").status == 200
    for answer in (client.upload("b.csv", b"a,b\n"), client.post("/run", {}),
                   client.post("/read", {}), client.ask("PUT", "/groups", b"a,b\n")):  # fmt: skip
        assert answer.status == 409
    assert client.ask("GET", "/columns").status == 404
    assert client.post("/cancel").status == 200
    assert client.state()["reading"]["status"] == "canceled"
    # What was not read cannot be selected from.
    assert client.post("/run", {}).status == 409


def test_too_little_memory_is_said_before(work, client, monkeypatch):
    work(READS)
    client.upload("a.csv", b"a,b\n1,2\n")
    client.until(lambda state: state["reading"]["status"] == "done")
    monkeypatch.setattr(_session, "available_memory", lambda: 2)
    answer = client.post("/run", {})
    assert answer.status == 409
    assert "6 bytes of memory, and 2 bytes is free" in json.loads(answer.body)["error"]
    work(ENDLESS)
    assert client.post("/run", {"report": False}).status == 200


def test_a_file_of_groups(work, client, monkeypatch):
    work(READS)
    client.upload("a.csv", b"a,b\n1,2\n")
    client.until(lambda state: state["reading"]["status"] == "done")
    answer = client.post("/run", {"group_file": True})
    assert answer.status == 409
    assert "none was chosen" in json.loads(answer.body)["error"]
    assert client.ask("PUT", "/groups", b"a,g\nb,g\n").status == 200
    monkeypatch.setattr(_session, "MOST_BYTES_OF_GROUPS", 3)
    assert client.ask("PUT", "/groups", b"a,g\n").status == 413
    work(ENDLESS)
    assert client.post("/run", {"group_file": True}).status == 200
    assert "--groups groups.csv" in client.state()["run"]["command"]


def test_no_file_but_those_of_the_run(client, work, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n", encoding="utf-8")
    for key in ("output", "..%2F1%2Fa.csv", "%2Fetc%2Fpasswd", str(secret).replace("/", "%2F")):
        assert client.ask("GET", f"/files/{key}").status == 404
    for path in ("/report", "/settings", "/columns"):
        assert client.ask("GET", path).status == 404
    assert client.ask("GET", "/app/../_server.py").status == 404


def test_the_file_named_at_the_start_is_read_in_its_place(work, table):
    work("import sys; print(sys.argv[2], file=sys.stderr)\n" + READS)
    with live(table) as client:
        state = client.until(lambda state: state["reading"]["status"] == "done")
        assert state["reading"]["lines"] == [str(table)]
        assert state["table"]["name"] == "my table.csv"
    assert table.exists()


def test_a_defect_is_told_and_shown_in_the_terminal(client, monkeypatch, capfd):
    monkeypatch.setattr(_session.Session, "cancel", lambda self: 1 / 0)
    answer = client.post("/cancel")
    monkeypatch.undo()
    assert answer.status == 500
    assert "terminal" in json.loads(answer.body)["error"]
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert client.state()["table"] is None


def test_nothing_is_left_where_the_port_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(_server.tempfile, "tempdir", str(tmp_path))
    with live() as client, pytest.raises(OSError), live_at(client.port):
        pass
    assert os.listdir(tmp_path) == []


def live_at(port):
    return _server.prepared(None, port, 10)
