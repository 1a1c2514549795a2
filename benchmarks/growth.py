"""What a catalog of ten times the rows costs: processor seconds of a start, and of a question that nobody asked before.

Every model, GPU and offer stands there ten times, under names of its own; the question is of the first of them, of a
service that builds nothing ahead and has found the words of names: both take the processor beside it after a start.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar

from benchmarks.results import RESULTS
from service.catalog.database import make_engine, migrate, writing
from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.seed_files import seed_entries
from service.catalog.store import put_gpu, put_model, put_offer, raise_revision

FACTORS: Final = (1, 10)
STARTS = 3
PROMISED: Final = {"size_ms": 1.2, "start_s": 1.5, "first_start_s": 1.5}
# In a process of its own, in which nothing was read before.
MEASURED = """
import gc, time
gc.disable()  # as `sizer` does while it imports
from starlette.testclient import TestClient
from service.main import create_app
from service.settings import Settings
gc.enable()
client = TestClient(create_app(Settings()))
client.__enter__()
assert client.get("/readyz").status_code == 200
start_s = time.process_time()
assert client.get("/size?model=no-such-model&gpu=h100&concurrent_requests=1&input_tokens=9&output_tokens=9").status_code == 404
question = {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 64, "output_tokens": 200, "latency": "none"}
took_ms = []
for number in range(220):
    began = time.process_time()
    answer = client.post("/size", json={**question, "input_tokens": 1_000 + number})
    took_ms.append(1e3 * (time.process_time() - began))
    assert answer.status_code == 200
print(start_s, sorted(took_ms[20:])[100])
client.__exit__(None, None, None)
"""
Row = TypeVar("Row", ModelEntry, GpuEntry, OfferEntry)


def copies(rows: Sequence[Row], factor: int) -> Iterator[Row]:
    """Yield entries so many times, each time under other names."""
    for number in range(factor):
        for row in rows:
            yield row.model_validate(_renamed(row.model_dump(mode="json"), f"-copy-{number}" if number else ""))


def _renamed(row: dict[str, Any], end: str) -> dict[str, Any]:
    """Return an entry under other names, with the GPU of an offer among them."""
    named = {name: f"{row[name]}{end}" for name in ("id", "name", "hf_id", "gpu") if row.get(name)}
    aliases = {"aliases": [f"{alias}{end}" for alias in row["aliases"]]} if "aliases" in row else {}
    checkpoints = [{**each, "hf_id": f"{each['hf_id']}{end}"} for each in row.get("checkpoints", ()) if each["hf_id"]]
    return {**row, **named, **aliases, **({"checkpoints": checkpoints} if checkpoints else {})}


def filled(url: str, factor: int) -> int:
    """Fill a database; return its rows."""
    engine = make_engine(url)
    migrate(engine)
    models, gpus, offers = seed_entries()
    rows = 0
    with writing(engine) as session, session.begin():
        for gpu in copies(gpus, factor):
            put_gpu(session, gpu)
            rows += 1
        for model in copies(models, factor):
            put_model(session, model)
            rows += 1
        for offer in copies(offers, factor):
            put_offer(session, offer)
            rows += 1
        raise_revision(session)
    engine.dispose()
    return rows


def measured(folder: Path, url: str) -> tuple[float, float]:
    """Return processor seconds to a start, and milliseconds of a question, each of a process of its own."""
    start_s, _ = _measured(folder, url, builds_ahead=True)
    _, size_ms = _measured(folder, url, builds_ahead=False)
    return start_s, size_ms


def _measured(folder: Path, url: str, *, builds_ahead: bool) -> tuple[float, float]:
    changed = {
        "SIZER_DATABASE_URL": url,
        "SIZER_SNAPSHOT_PATH": str(folder / "snapshot.json"),
        "SIZER_BUILDS_AHEAD": str(builds_ahead),
    }
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED], env={**os.environ, **changed}, check=True, stdout=subprocess.PIPE, text=True
    )
    start_s, size_ms = map(float, ran.stdout.split())
    return start_s, size_ms


def row_of(folder: Path, factor: int) -> dict[str, float]:
    """Return the figures of a catalog so many times as large: of a first start, and of those after it."""
    folder.mkdir()
    url = f"sqlite:///{folder}/catalog.sqlite3"
    rows = filled(url, factor)
    first, *others = [measured(folder, url) for _ in range(1 + STARTS)]
    return {
        "catalog": factor,
        "rows": rows,
        "first_start_s": first[0],
        "start_s": median(start_s for start_s, _ in others),
        "size_ms": median(size_ms for _, size_ms in others),
    }


def main() -> None:
    """Measure both in turns, print, and write down."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [row_of(Path(folder, str(factor)), factor) for factor in FACTORS]
    times = {name: round(rows[-1][name] / rows[0][name], 2) for name in PROMISED}
    for line in (*rows, times):
        print("  ".join(f"{name} {value:.6g}" for name, value in line.items()))
    results = {"rows": rows, "times": times, "promised": PROMISED}
    (RESULTS / "growth.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
