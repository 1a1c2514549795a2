"""The real service behind a real socket, in this process."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from service.api.connections import Connection
from service.main import create_app
from service.questions.asked import Question
from service.questions.registry import QUESTIONS
from tests.conftest import seed_database, service_settings


class Served:
    """Where a service listens, and how to talk to it in bytes."""

    def __init__(self, port: int, app: FastAPI, server: uvicorn.Server | None = None) -> None:
        self.port, self.app, self._server = port, app, server
        self.url = f"http://127.0.0.1:{self.port}"

    def end(self) -> None:
        """Tell it to end, and wait until it takes no further connection."""
        assert self._server is not None
        self._server.should_exit = True
        while self._server.servers[0].sockets:
            time.sleep(0.005)

    def connected(self, patience_s: float = 20) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=patience_s)

    def said(self, request: bytes, patience_s: float = 20) -> bytes:
        """Return all that is answered until the service closes the connection."""
        with self.connected(patience_s) as connection:
            connection.sendall(request)
            return heard(connection)


def heard(connection: socket.socket) -> bytes:
    """Return what comes until the other end closes, however it does."""
    answer = b""
    try:
        while part := connection.recv(65_536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


@contextmanager
def served(
    folder: Path, http: type[Connection] = Connection, questions: Sequence[Question] = QUESTIONS, **settings: Any
) -> Iterator[Served]:
    """Serve a seeded catalog on a free port."""
    wanted = service_settings(folder, **settings)
    seed_database(wanted.database_url)
    app = create_app(wanted, questions)
    config = uvicorn.Config(app, port=0, http=http, ws="none", loop="asyncio", log_config=None, timeout_keep_alive=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Served(server.servers[0].sockets[0].getsockname()[1], app, server)
    finally:
        server.should_exit = True
        thread.join()
