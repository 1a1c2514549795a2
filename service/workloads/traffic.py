"""Asks a Prometheus for the load of workloads, and keeps what it last said, with its age.

Source: prometheus/prometheus, `docs/querying/api.md`: `GET /api/v1/query_range` answers with `status`, and `data` of
`resultType` `matrix`; 400 and `bad_data` for a query that is wrong; times in seconds, values as text.
"""

from asyncio import Task, create_task, shield
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import time
from typing import Any, Final

from cachetools import LRUCache

from service.outward.errors import NotAllowedError, OutwardError
from service.outward.reader import JsonReader
from service.questions.refusals import Fault, RefusalError
from service.workloads.errors import LoadUnknownError
from service.workloads.load_from import LARGEST_LOAD, Load, LoadFrom, Sample, finite_samples, load_of

MOST_KEPT: Final = 2_000
FRESH_S: Final = 1.0
MOST_ERROR: Final = 300
Key = tuple[LoadFrom, float]
NO_SERIES: Final = "no series with a value"
SERIES_ENDED: Final = "it answers, and the series has no newer value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Samples, and why there are no newer ones; None where these are of now."""

    samples: Sequence[Sample]
    asked_at_s: float
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The load that traffic calls for, how old the last sample is, and why there is no newer one."""

    load: Load
    age_s: float
    failure: str | None


class Traffic:
    """What each Prometheus said of each query."""

    def __init__(self, reader: JsonReader, allowed: frozenset[str], now_s: Callable[[], float] = time) -> None:
        """Start with nothing known.

        Args:
            reader: that asks.
            allowed: addresses that may be asked.
            now_s: the time. [s since 1970]
        """
        self.allowed = allowed
        self._reader, self.now_s = reader, now_s
        self._kept: LRUCache[Key, Measured] = LRUCache(MOST_KEPT)
        self._under_way: dict[Key, Task[Measured]] = {}

    async def followed(self, load_from: LoadFrom, loading_s: float) -> Followed:
        """Return the load by samples of now, asked for at most once a second, or by the last good ones.

        Raises:
            RefusalError: the address is not allowed, or the query is none of one series, or says more than is sized.
            LoadUnknownError: there are none that are young enough.
        """
        check_allowed(load_from, self.allowed)
        key = (load_from, loading_s)
        kept = self._kept.get(key)
        if kept is None or not 0 <= self.now_s() - kept.asked_at_s < FRESH_S:
            kept = await shield(self._asking(key))
        if not kept.samples:
            raise LoadUnknownError(f"the load is not known; the Prometheus: {kept.failure}")
        now_s = self.now_s()
        age_s = max(now_s - kept.samples[-1].at_s, 0.0)
        if age_s > load_from.max_age_s:
            reason = kept.failure or SERIES_ENDED
            raise LoadUnknownError(f"the load was last known {age_s:.0f} s ago; the Prometheus: {reason}")
        load = load_of(kept.samples, load_from, loading_s, now_s)
        if load.amount > (most := LARGEST_LOAD[load.field]):
            detail = f"the query calls for {load.field} of {load.amount:g}, and at most {most:,.0f} are sized"
            raise _refused("query", detail, f"PromQL whose {load.field} are at most {most:,.0f}")
        return Followed(load=load, age_s=age_s, failure=kept.failure)

    def _asking(self, key: Key) -> Task[Measured]:
        """Return the asking that is under way, or begin it."""
        if key not in self._under_way:
            self._under_way[key] = create_task(self._asked(key))
            self._under_way[key].add_done_callback(lambda _: self._under_way.pop(key, None))
        return self._under_way[key]

    async def _asked(self, key: Key) -> Measured:
        load_from, loading_s = key
        before, now_s = self._kept.get(key), self.now_s()
        try:
            samples, failure = await self._samples(load_from, loading_s, now_s), None
        except OutwardError as error:
            samples, failure = (), str(error)
        if not samples:
            samples, failure = () if before is None else tuple(before.samples), failure or NO_SERIES
        self._kept[key] = Measured(samples=samples, asked_at_s=now_s, failure=failure)
        return self._kept[key]

    async def _samples(self, load_from: LoadFrom, loading_s: float, now_s: float) -> Sequence[Sample]:
        step_s = load_from.step_s(loading_s)
        steps = int(load_from.window_s(loading_s) // step_s)
        asked = {
            "query": load_from.query,
            "start": f"{now_s - steps * step_s:.3f}",
            "end": f"{now_s:.3f}",
            "step": str(step_s),
        }
        url = load_from.prometheus_url.rstrip("/") + "/api/v1/query_range"
        try:
            status, document = await self._reader.read(url, asked)
        except NotAllowedError as error:
            raise _refused("prometheus_url", f"its {error}", "an address that this service may reach") from error
        return _series(status, document)

    async def close(self) -> None:
        """Ask no more."""
        for task in tuple(self._under_way.values()):
            task.cancel()
        await self._reader.close()


def check_allowed(load_from: LoadFrom, allowed: frozenset[str]) -> None:
    """Hold an address to those that the operator named.

    Raises:
        RefusalError: it is none of them.
    """
    if load_from.prometheus_url.rstrip("/") not in allowed:
        accepted = ", ".join(sorted(allowed)) or "none: SIZER_PROMETHEUS_URLS names those that may be asked"
        raise _refused("prometheus_url", "this Prometheus is not on the list of those that may be asked", accepted)


def _series(status: int, document: Any) -> Sequence[Sample]:
    """Return the samples of the one series.

    Raises:
        RefusalError: the query is wrong, or answers with several series.
        OutwardError: this is no answer of Prometheus.
    """
    if status in (400, 422) and isinstance(document, dict):
        detail = f"the Prometheus refuses the query: {str(document.get('error', ''))[:MOST_ERROR]}"
        raise _refused("query", detail, "PromQL that answers with one series")
    try:
        if status != 200 or document["status"] != "success":
            raise OutwardError(f"status {status}")
        series = document["data"]["result"]
        if len(series) > 1:
            detail = f"the query answers with {len(series)} series, and one is read"
            raise _refused("query", detail, "one series, as sum(...) makes of many")
        return finite_samples(series[0]["values"]) if series else ()
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise OutwardError("an answer that is none of Prometheus'") from error


def _refused(field: str, detail: str, accepted: str) -> RefusalError:
    return RefusalError("invalid-request", detail, Fault(f"load_from.{field}", detail, accepted))
