"""A real Prometheus of this machine, with a past that is written for it; without the program, a loud skip."""

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


def program(name: str) -> str:
    """Return where a program is; skip without it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(
            f"{name} is not installed here (Debian: apt-get install prometheus prometheus-blackbox-exporter jq)",
            allow_module_level=True,
        )
    return path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def with_past(folder: Path, series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Write samples into a database as Prometheus' own tool does."""
    lines: list[str] = []
    for name, samples in series.items():
        kind = f"# TYPE {name.partition('{')[0]} gauge"  # once for all labels
        lines += [*([] if kind in lines else [kind]), *(f"{name} {value} {at_s:.3f}" for at_s, value in samples)]
    past = folder / "past.om"
    past.write_text("\n".join((*lines, "# EOF", "")), encoding="utf-8")
    tool = program("promtool")
    subprocess.run(
        [tool, "tsdb", "create-blocks-from", "openmetrics", str(past), str(folder / "data")],
        check=True, capture_output=True,
    )  # fmt: skip


@contextmanager
def prometheus(folder: Path, config: str = "{}") -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a Prometheus inside the block: its address, and the process."""
    file, port = folder / "prometheus.yml", free_port()
    file.write_text(config, encoding="utf-8")
    command = [
        program("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=1d", "--log.level=error",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        ends_at = time.monotonic() + 60
        while not is_ready(url):
            assert process.poll() is None
            assert time.monotonic() < ends_at
            time.sleep(0.05)
        yield url, process
    finally:
        process.kill()
        process.wait()


def is_ready(url: str, path: str = "/-/ready") -> bool:
    try:
        with urllib.request.urlopen(url + path, timeout=5) as response:  # noqa: S310 - on this machine
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
