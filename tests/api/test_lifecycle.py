"""A process that is told to end answers what it began; one that is killed leaves all of a write or nothing."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from tests.catalog.samples import GPU
from tests.conftest import API_KEY, seed_database

QUESTION: dict[str, Any] = {"model": "qwen3-32b", "gpu": "h100", "input_tokens": 900, "output_tokens": 90}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def process(folder: Path, port: int, *, host: str = "127.0.0.1", **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Serve as `sizer serve` does."""
    environment = {
        **os.environ,
        "SIZER_DATABASE_URL": f"sqlite:///{folder}/catalog.sqlite3",
        "SIZER_SNAPSHOT_PATH": str(folder / "snapshot.json"),
        "SIZER_API_KEYS": API_KEY,
        "SIZER_WRITE_SECONDS": "30",
        **settings,
    }
    with subprocess.Popen(
        [sys.executable, "-c", "from service.start import main; main()", "serve", "--host", host, "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            wait_until_ready(running, port)
            yield running
        finally:
            running.kill()


def wait_until_ready(running: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(600):
        assert running.poll() is None
        try:
            if httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise AssertionError("it never got ready")


def test_all_addresses_are_those_of_both_kinds(tmp_path: Path) -> None:
    port = free_port()
    with process(tmp_path, port, host="::"):  # which is ready once 127.0.0.1 says so
        asked = b"GET /livez HTTP/1.1\r\nHost: sizer\r\nConnection: close\r\n\r\n"
        assert answered("::1" if has_ipv6() else "127.0.0.1", port, asked).startswith(b"HTTP/1.1 200 ")


def answered(address: str, port: int, request: bytes) -> bytes:
    with socket.create_connection((address, port), timeout=5) as connection:
        connection.sendall(request)
        return connection.recv(64)


def has_ipv6() -> bool:
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


def test_no_request_that_was_taken_fails_when_the_process_is_told_to_end(tmp_path: Path) -> None:
    seed_database(f"sqlite:///{tmp_path}/catalog.sqlite3")
    port, outcomes, stop = free_port(), Counter[str](), threading.Event()

    def ask(first: int) -> None:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            for number in range(first, first + 10_000):
                if stop.is_set():
                    return
                try:
                    response = client.get("/size", params={**QUESTION, "concurrent_requests": number})
                except httpx2.ConnectError:  # nobody listens any more: the request was not taken
                    outcomes["not taken"] += 1
                    return
                except httpx2.TransportError as error:
                    outcomes[type(error).__name__] += 1
                    return
                outcomes[str(response.status_code)] += 1

    with process(tmp_path, port) as running:
        threads = [threading.Thread(target=ask, args=(1 + 10_000 * number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        while outcomes["200"] < 20:
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        code = running.wait(60)
        stop.set()
        for thread in threads:
            thread.join()

    # Whoever says nothing for a second may find its connection closed in the moment in which its next request leaves.
    assert set(outcomes) <= {"200", "503", "not taken", "RemoteProtocolError", "ReadError"}
    assert outcomes["RemoteProtocolError"] + outcomes["ReadError"] <= 1
    assert code == 0


def test_a_process_in_the_middle_of_dear_questions_ends_when_told_to(tmp_path: Path) -> None:
    """Also while nobody waits for them any longer; that it ends at all is what it once did not."""
    seed_database(f"sqlite:///{tmp_path}/catalog.sqlite3")
    port = free_port()
    path = "/recommend?model=llama-3.3-70b&ttft_s=1&tpot_s=0.03&input_tokens=1000&output_tokens=200&request_rate_per_s="

    with process(tmp_path, port, SIZER_SHUTDOWN_SECONDS="1") as running:
        askers = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for number, asker in enumerate(askers):
            asker.sendall(f"GET {path}{20 + number} HTTP/1.1\r\nhost: here\r\n\r\n".encode())
        askers[0].settimeout(0.5)
        with suppress(TimeoutError):
            askers[0].recv(1)
        for asker in askers[4:]:
            asker.close()
        running.send_signal(signal.SIGTERM)

        assert running.wait(60) == 0
        for asker in askers[:4]:
            asker.close()


def test_a_process_killed_in_the_middle_of_writes_leaves_each_whole_or_not_at_all(tmp_path: Path) -> None:
    database_url = f"sqlite:///{tmp_path}/catalog.sqlite3"
    seed_database(database_url)
    port, confirmed = free_port(), list[int]()

    def write(first: int) -> None:
        headers = {"x-api-key": API_KEY}
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            for number in range(first, first + 1_000):
                gpu = {**GPU, "id": f"made-up-{number}", "name": f"Made up {number}", "aliases": [f"alias-{number}"]}
                try:
                    response = client.put(f"/catalog/gpus/made-up-{number}", json=gpu)
                except httpx2.TransportError:
                    return
                if response.status_code == 200:
                    confirmed.append(number)

    with process(tmp_path, port) as running:
        threads = [threading.Thread(target=write, args=(1_000 * number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        while len(confirmed) < 10:
            time.sleep(0.005)
        running.kill()
        running.wait()
        for thread in threads:
            thread.join()

    with process(tmp_path, port):
        url = f"http://127.0.0.1:{port}"
        ready = httpx2.get(f"{url}/readyz").json()
        listed = httpx2.get(f"{url}/catalog/gpus", params={"page_size": 500}).json()["items"]
    assert ready["catalog_origin"] == "database"
    assert ready["last_refresh_error"] is None
    made_up = {item["id"]: item for item in listed if item["id"].startswith("made-up-")}
    assert {f"made-up-{number}" for number in confirmed} <= set(made_up)
    for name, gpu in made_up.items():
        assert gpu["aliases"] == [name.replace("made-up", "alias")]
        assert set(gpu["figures"]) == set(GPU["figures"])
