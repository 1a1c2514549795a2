"""Pods of a workload are known before an autoscaler, which waits three seconds, asks for them."""

from pathlib import Path

from service.api.ahead import Ahead
from tests.conftest import API_KEY, seeded_service, service_settings
from tests.workloads.test_workloads import IMPOSSIBLE, QUESTION, put


def test_workloads_are_answered_before_anybody_asks_and_again_when_one_is_another(tmp_path: Path) -> None:
    with seeded_service(service_settings(tmp_path, builds_ahead=False)) as client:
        client.headers["X-API-Key"] = API_KEY
        state = client.app.state  # type: ignore[attr-defined] # an application of Starlette
        ahead = Ahead(state.workloads, state.catalog, state.reception)
        assert client.portal is not None
        numbers = []
        for name, question in {"chat": QUESTION, "bad": {**QUESTION, "model": "none"}, "no": IMPOSSIBLE}.items():
            put(client, name, question)
            client.portal.call(ahead.look)
            numbers.append(len(state.reception.desk.kept))
        client.portal.call(ahead.look)
        numbers.append(len(state.reception.desk.kept))

        asked_before = state.reception.num_computed
        assert client.get("/workloads/chat/replicas").status_code == 200
        assert state.reception.num_computed == asked_before
    assert numbers == [1, 1, 2, 2]
