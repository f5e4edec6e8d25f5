"""The server: this computer alone, with a token, and nothing that was not asked for.

Every request must name this server as its host (so no foreign name can be made to lead here) and
hold the token; what changes something must come from the page itself.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import traceback
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from bsufs._extras import needs
from bsufs.app._request import Reading, Settings
from bsufs.app._session import Refusal, Session

with needs("the app", "app"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
_MOST_BYTES_OF_JSON = 2**23
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The report has a policy of its own, in which names cannot run; and it is no part of this origin.
_REPORT_POLICY = "sandbox allow-scripts allow-downloads allow-modals; frame-ancestors 'self'"
_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_ASSETS = {
    "/": ("app/static/app.html", "text/html"),
    "/app.js": ("app/static/app.js", "text/javascript"),
    "/app.css": ("app/static/app.css", "text/css"),
    # The app looks and works like the report.
    "/report.css": ("inspection/page/templates/selection.css", "text/css"),
    "/shared.js": ("inspection/page/templates/shared.js", "text/javascript"),
}
_NO_TOKEN = "Open the address that 'bsufs app' printed: it ends in a token that is missing here."


class Guard:
    """Lets through what comes from this computer, with the token, from the page itself."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        # Cookies do not know ports: another app has another one.
        self._cookie = f"bsufs-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        request = Request(scope)
        named = request.query_params.get("token", "") if request.url.path == "/" else ""
        has_token = self._fits(named)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                own = {**_HEADERS, "content-security-policy": _POLICY}
                if has_token:
                    own["set-cookie"] = (
                        f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    )
                for name, value in own.items():
                    if name.encode() not in given:
                        message["headers"].append((name.encode(), value.encode()))
            await send(message)

        refusal = self._refusal(request, has_token)
        app = self._app if refusal is None else refusal
        await app(scope, receive, send_guarded)

    def _refusal(self, request: Request, has_token: bool) -> Response | None:
        if request.headers.getlist("host") not in [[host] for host in self._hosts]:
            return PlainTextResponse("This server is for this computer alone.", 421)
        if not has_token and not self._fits(request.cookies.get(self._cookie, "")):
            return PlainTextResponse(_NO_TOKEN, 403)
        origin = request.headers.get("origin")
        own = f"http://{request.headers['host']}"
        if origin != own and (origin is not None or request.method not in ("GET", "HEAD")):
            return PlainTextResponse("This request comes from another page.", 403)
        site = request.headers.get("sec-fetch-site", "none")
        if not has_token and site not in ("same-origin", "none"):
            return PlainTextResponse("This request comes from another page.", 403)
        return None

    def _fits(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self._token.encode())


def make_app(session: Session, token: str, port: int) -> Guard:
    """Return what answers requests."""

    async def asset(request: Request) -> Response:
        path, media_type = _ASSETS[request.url.path]
        return Response((files("bsufs") / path).read_bytes(), media_type=media_type)

    async def state(_: Request) -> Response:
        return JSONResponse(session.state())

    async def columns(_: Request) -> Response:
        return FileResponse(session.columns, media_type="application/json")

    async def upload(request: Request) -> Response:
        name = request.query_params.get("name", "")
        await session.upload(name, _length(request), request.stream())
        return JSONResponse(session.state())

    async def groups(request: Request) -> Response:
        await session.upload_groups(_length(request), request.stream())
        return JSONResponse(session.state())

    async def read(request: Request) -> Response:
        session.read(Reading.parsed(await _document(request)))
        return JSONResponse(session.state())

    async def run(request: Request) -> Response:
        settings = Settings.parsed(await _document(request))
        await run_in_threadpool(session.start, settings)
        return JSONResponse(session.state())

    async def last_settings(_: Request) -> Response:
        return JSONResponse(asdict(session.settings))

    async def cancel(_: Request) -> Response:
        await run_in_threadpool(session.cancel)
        return JSONResponse(session.state())

    async def download(request: Request) -> Response:
        path = session.file(request.path_params["key"])
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    async def report(_: Request) -> Response:
        headers = {"content-security-policy": _REPORT_POLICY}
        return FileResponse(session.file("report"), media_type="text/html", headers=headers)

    async def refused(_: Request, error: Exception) -> Response:
        status = error.status if isinstance(error, Refusal) else 400
        return JSONResponse({"error": str(error)}, status)

    async def defect(_: Request, error: Exception) -> Response:
        traceback.print_exception(error)
        return JSONResponse({"error": "Unexpected: the terminal shows what happened."}, 500)

    routes = [
        *(Route(path, asset) for path in _ASSETS),
        Route("/state", state),
        Route("/columns", columns),
        Route("/table", upload, methods=["PUT"]),
        Route("/groups", groups, methods=["PUT"]),
        Route("/read", read, methods=["POST"]),
        Route("/run", run, methods=["POST"]),
        Route("/settings", last_settings),
        Route("/cancel", cancel, methods=["POST"]),
        Route("/files/{key}", download),
        Route("/report", report),
    ]
    expected = (Refusal, ValueError, OSError, ClientDisconnect)
    handlers: dict[Any, Any] = dict.fromkeys(expected, refused) | {Exception: defect}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token, port)


def _length(request: Request) -> int | None:
    given = request.headers.get("content-length", "")
    return int(given) if given.isdecimal() else None


async def _document(request: Request) -> Any:
    """Return what was sent as JSON."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES_OF_JSON:
            raise Refusal(413, "The request is too large: name fewer columns.")
    return json.loads(body)


@contextlib.contextmanager
def prepared(
    file: Path | None, port: int, limit: int
) -> Iterator[tuple[uvicorn.Server, socket.socket, str]]:
    """Make a server, its socket and its address; afterwards nothing of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="bsufs-"))
    session: Session | None = None
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        # From here on who comes too early waits.
        listening.listen(128)
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        session = Session(folder, limit, file)
        config = uvicorn.Config(
            make_app(session, token, port),
            access_log=False,
            lifespan="off",
            # What was under way when the app ends is no error; others are printed above.
            log_level="critical",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=0,
            ws="none",
        )
        yield uvicorn.Server(config), listening, f"http://{HOST}:{port}/?token={token}"
    finally:
        listening.close()
        if session is not None:
            session.cancel()
        shutil.rmtree(folder, ignore_errors=True)


def serve(
    file: Path | None, port: int, limit: int, open_browser: bool, say: Callable[[str], None]
) -> None:
    """Serve the page until Ctrl-C, and say where; port 0 stands for any that is free."""
    with prepared(file, port, limit) as (server, listening, address):
        say(address)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            # When the terminal is closed, what was uploaded is removed too.
            signal.signal(signal.SIGHUP, server.handle_exit)
        if open_browser:
            # Some browsers come back only when they are closed.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
