"""Stands between a service and PostgreSQL, and can fall silent in the middle of a sentence."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from sqlalchemy.engine import make_url


class Silencer:
    """Passes bytes on to both sides, until a request holds what it was told to fall silent after."""

    def __init__(self, postgres_url: str) -> None:
        self._database = make_url(postgres_url)
        self._trigger: bytes | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        port = self._listener.getsockname()[1]
        through = self._database.difference_update_query(["host"]).set(host="127.0.0.1", port=port)
        self.url = through.render_as_string(hide_password=False)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for one in self._sockets:
            one.close()

    def falls_silent_after(self, request: bytes) -> None:
        """Pass the next request that holds these bytes on, and nothing back."""
        self._trigger = request

    def speaks_again(self) -> None:
        """Serve new connections; those that were silent stay so."""
        self._trigger = None

    def _accept(self) -> None:
        while True:
            server = socket.socket(socket.AF_UNIX)
            self._sockets.append(server)
            try:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                server.connect(f"{self._database.query['host']}/.s.PGSQL.{self._database.port or 5432}")
            except OSError:
                return
            muted = threading.Event()
            threading.Thread(target=self._to_server, args=(client, server, muted), daemon=True).start()
            threading.Thread(target=self._to_client, args=(server, client, muted), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, muted: threading.Event) -> None:
        with suppress(OSError):  # either side has gone
            while data := client.recv(65536):
                if self._trigger is not None and self._trigger in data:
                    muted.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _to_client(self, server: socket.socket, client: socket.socket, muted: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if not muted.is_set():
                    client.sendall(data)
