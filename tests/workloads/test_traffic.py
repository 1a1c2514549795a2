"""What a Prometheus says is held to what is asked of it, and told by the field that asks."""

from asyncio import run
from typing import Any, cast

import pytest

from service.outward.reader import JsonReader
from service.questions.refusals import RefusalError
from service.workloads.load_from import LoadField, LoadFrom
from service.workloads.traffic import Traffic

ADDRESS = "http://prometheus:9090"
NOW = 10_000.0


class Answering:
    """A Prometheus that measures the same at all times: docs/querying/api.md, `query_range`."""

    def __init__(self, value: str) -> None:
        self._value = value

    async def read(self, _url: str, _asked: dict[str, str]) -> tuple[int, Any]:
        series = {"metric": {}, "values": [[NOW - 60, self._value], [NOW, self._value]]}
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": [series]}}


def amount(value: str, field: LoadField) -> float:
    traffic = Traffic(cast("JsonReader", Answering(value)), frozenset({ADDRESS}), lambda: NOW)
    asked = LoadFrom(prometheus_url=ADDRESS, query="load", field=field)

    return run(traffic.followed(asked, 0.0)).load.amount


@pytest.mark.parametrize(
    ("field", "most", "beyond"),
    [("request_rate_per_s", "1000000", "1000001"), ("concurrent_requests", "10000000", "10000001")],
)
def test_more_than_is_sized_is_refused_by_the_query_that_measured_it(field: LoadField, most: str, beyond: str) -> None:
    assert amount(most, field) == float(most)

    with pytest.raises(RefusalError) as refusal:
        amount(beyond, field)

    assert [fault.field for fault in refusal.value.faults] == ["load_from.query"]
    assert f"{int(most):,}" in str(refusal.value.faults[0].accepted)
