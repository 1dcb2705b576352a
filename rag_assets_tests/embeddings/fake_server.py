"""A small OpenAI-compatible server on loopback that can be told to misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rag_assets_tests.embeddings.corpora import vector_of

Body = dict[str, Any]


@dataclass
class Reply:
    """`body` is sent as JSON, or as it is if it is bytes; a dropped reply closes the connection."""

    status: int = 200
    body: Body | bytes = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False


Behaviour = Callable[[Body, int], Reply]


def good(request: Body, number: int = 0) -> Reply:
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(request["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply(body={"object": "list", "data": data, "model": request["model"], "usage": usage})


@dataclass
class FakeServer:
    """`behaviour(request, number)` answers the request of that number, counted from 0."""

    behaviour: Behaviour
    url: str = ""
    requests: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request["input"]]


@contextmanager
def serving(behaviour: Behaviour = good) -> Iterator[FakeServer]:
    fake = FakeServer(behaviour)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(fake.requests)
                fake.requests.append({**request, "path": self.path})
                fake.headers.append({key.lower(): value for key, value in self.headers.items()})
            reply = fake.behaviour(request, number)
            if reply.drop:
                self.close_connection = True
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for key, value in {"Content-Length": str(len(body)), **reply.headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that gave up waiting is no error of the server."""

    server = Quiet(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
