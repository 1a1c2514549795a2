"""Stands between a service and PostgreSQL, and does what networks do: refuse, swallow, delay, cut, drip."""

import asyncio
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Literal, Self

from sqlalchemy.engine import make_url

Fault = Literal["none", "refuse", "blackhole", "delay", "cut", "drip"]
FAULTS: Final[tuple[Fault, ...]] = ("refuse", "blackhole", "delay", "cut", "drip")
DELAY_S: Final = 0.05  # of every piece, either way
DRIP_S: Final = 0.2  # of every byte that comes back


class FaultyNetwork:
    """A proxy whose fault can be changed at any time, for old connections and new ones."""

    def __init__(self, postgres_url: str) -> None:
        self._database = make_url(postgres_url)
        self._fault: Fault = "none"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        through = self._database.difference_update_query(["host"]).set(host="127.0.0.1", port=port)
        self.url = through.render_as_string(hide_password=False)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def does(self, fault: Fault) -> None:
        """Have this fault from now on; `cut` and `refuse` end what is open."""
        self._fault = fault
        if fault in ("cut", "refuse"):
            asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _end(self) -> None:
        self._server.close()
        await self._cut()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    async def _cut(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._fault == "refuse":
            writer.transport.abort()
            return
        folder = self._database.query.get("host")
        if folder:
            path = f"{folder}/.s.PGSQL.{self._database.port or 5432}"
            server_reader, server_writer = await asyncio.open_unix_connection(path)
        else:
            server_reader, server_writer = await asyncio.open_connection(
                self._database.host, self._database.port or 5432
            )
        self._writers |= {writer, server_writer}
        with suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(
                self._pump(reader, server_writer, is_answer=False), self._pump(server_reader, writer, is_answer=True)
            )
        for one in (writer, server_writer):
            self._writers.discard(one)
            one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool) -> None:
        while data := await reader.read(65_536):
            while self._fault == "blackhole":  # noqa: ASYNC110 - it ends when another thread says so
                await asyncio.sleep(0.02)
            if self._fault == "delay":
                await asyncio.sleep(DELAY_S)
            await self._written(writer, data, drips=is_answer and self._fault == "drip")
        raise ConnectionResetError

    async def _written(self, writer: asyncio.StreamWriter, data: bytes, *, drips: bool) -> None:
        for piece in [data[at : at + 1] for at in range(len(data))] if drips else [data]:
            if drips and self._fault == "drip":
                await asyncio.sleep(DRIP_S)
            writer.write(piece)
            await writer.drain()
