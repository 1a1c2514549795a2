"""The committed contract is what is served, and generated requests get only declared answers."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import schemathesis
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from service.api.openapi import rendered
from service.catalog.faults import sentence_of
from service.engine.time.ready import make_ready
from service.main import create_app
from service.questions.asked import Question
from service.questions.registry import QUESTIONS
from service.settings import Settings
from tests.api.served import served

ANSWERED_WITHIN_S = 60  # the first question of a GPU waits for its step times, twice as long beside other tests
ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "openapi" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(COMMITTED.read_text(encoding="utf-8"))
OPERATIONS = [
    (method, path, operation) for path, item in DOCUMENT["paths"].items() for method, operation in item.items()
]
TEXTS = ("/probe", "/metrics")  # read by monitors alone
UNITS = {"_per_s": "[1/s]", "_s": "[s]", "_tokens": "[tokens]", "_bytes": "[bytes]", "_fraction": "[fraction]"}


def test_the_committed_contract_is_what_is_served(client: TestClient) -> None:
    assert COMMITTED.read_text(encoding="utf-8") == rendered(create_app(Settings()))
    assert client.get("/openapi.json").json() == DOCUMENT


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=lambda it: it if isinstance(it, str) else "")
def test_every_operation_has_an_example_and_a_stable_id(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["operationId"].split("_")[0] in {method, "list", "get", "put", "import", "delete"}
    assert operation["summary"]
    contents = operation["responses"]["200"]["content"]
    content = contents["text/plain" if path in TEXTS else "application/json"]
    assert "example" in content or "Abridged: `{" in operation["responses"]["200"]["description"]
    if "requestBody" in operation and path in ("/size", "/capacity", "/recommend"):
        assert operation["requestBody"]["content"]["application/json"]["examples"]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_every_field_of_a_question_has_words_a_unit_and_an_example_that_is_read(question: Question) -> None:
    for name, info in question.body.model_fields.items():
        assert info.description, name
        unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
        assert unit in info.description, name
        read: Any = Annotated[info.annotation, name, *info.metadata]
        for example in info.examples or ():
            TypeAdapter(read).validate_python(example)
        assert info.examples or name == "pasted_config", name


def shapes_of_properties(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property of every schema of the document, wherever it stands, with its path."""
    if isinstance(part, list):
        part = dict(enumerate(part))
    if not isinstance(part, dict):
        return
    properties = part.get("properties")
    if isinstance(properties, dict):
        yield from ((f"{path}/{name}", shape) for name, shape in properties.items())
    for name, rest in part.items():
        if name not in ("example", "examples", "default"):
            yield from shapes_of_properties(rest, f"{path}/{name}")


def is_number(shape: dict[str, Any]) -> bool:
    """Return whether a property takes a number, or a list of numbers."""
    ways = [shape, *shape.get("anyOf", ())]
    ways += [way["items"] for way in ways if isinstance(way.get("items"), dict)]
    return any(way.get("type") in ("integer", "number") for way in ways)


def test_every_property_of_the_contract_is_described_and_every_number_has_a_unit() -> None:
    properties = dict(shapes_of_properties(DOCUMENT))

    assert len(properties) > 700
    assert [path for path, shape in properties.items() if not shape.get("description")] == []
    numbers = [path for path, shape in properties.items() if is_number(shape)]
    assert len(numbers) > 200
    assert [path for path in numbers if "[" not in properties[path]["description"]] == []


def test_every_parameter_of_the_contract_is_described() -> None:
    told = {
        f"{method} {path} {parameter['name']}": parameter.get("description")
        for method, path, operation in OPERATIONS
        for parameter in operation.get("parameters", ())
    }

    assert len(told) > 100
    assert [where for where, words in told.items() if not words] == []


def test_every_pattern_of_the_contract_is_asked_for_in_words() -> None:
    patterns = set(re.findall(r'"pattern": ?("(?:[^"\\\\]|\\\\.)*")', json.dumps(DOCUMENT)))

    assert len(patterns) > 5
    for pattern in map(json.loads, patterns):
        error = {"type": "string_pattern_mismatch", "msg": "", "ctx": {"pattern": pattern}}
        assert "matching" not in sentence_of(error), pattern


def test_blocks_keep_the_names_that_clients_know() -> None:
    schemas = DOCUMENT["components"]["schemas"]

    assert "Lever" not in schemas
    assert schemas["SizeAnswer"]["properties"]["levers"]["items"] == {"$ref": "#/components/schemas/LeverAnswer"}
    assert schemas["LeverAnswer"]["title"] == "LeverAnswer"


def test_writing_is_locked_by_a_key_or_a_token() -> None:
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert schemes["apiKey"] == {
        "type": "apiKey", "in": "header", "name": "X-API-Key", "description": "needed to write",
    }  # fmt: skip
    assert (schemes["bearer"]["type"], schemes["bearer"]["scheme"]) == ("http", "bearer")
    locked = {operation["operationId"] for _, _, operation in OPERATIONS if operation.get("security")}
    assert locked == {
        operation["operationId"]
        for method, path, operation in OPERATIONS
        if (path.startswith(("/catalog", "/workloads", "/measurements/")) and method != "get")
        or path.endswith("/changes")
    }
    assert all(operation["security"] in ([], [{"apiKey": []}, {"bearer": []}]) for _, _, operation in OPERATIONS)


def test_a_service_that_is_reached_elsewhere_says_so() -> None:
    app = create_app(Settings(public_url="https://sizer.example.com", reads_need_key=True))

    assert app.openapi()["servers"] == [{"url": "https://sizer.example.com"}]
    assert app.openapi()["paths"]["/size"]["get"]["security"] == [{"apiKey": []}, {"bearer": []}]


@pytest.mark.parametrize("path", ["/size", "/capacity", "/recommend"])
def test_examples_of_questions_are_answered(client: TestClient, path: str) -> None:
    examples = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]["application/json"]["examples"]

    for example in examples.values():
        response = client.post(path, json=example["value"])
        assert response.status_code == 200, response.text


@pytest.fixture(scope="module")
def live_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server on a real port; what it loads behind its start is loaded before.

    Hypothesis walks through `sys.modules` while it generates, which no other thread may add to meanwhile.
    """
    make_ready()
    with served(tmp_path_factory.mktemp("live")) as running:
        yield running.url


def test_a_generated_client_can_ask(live_url: str, tmp_path: Path) -> None:
    package = tmp_path / "generated"
    subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(COMMITTED), "--meta", "none",
         "--output-path", str(package)],
        check=True, capture_output=True, cwd=tmp_path,
    )  # fmt: skip
    script = f"""
from generated import Client
from generated.api.questions import get_size, post_size
from generated.models import SizeBody
client = Client(base_url={live_url!r})
question = dict(model="llama-3.1-8b", gpu="h100", concurrent_requests=8, input_tokens=1000, output_tokens=100)
by_get = get_size.sync(client=client, **question)
by_post = post_size.sync(client=client, body=SizeBody.from_dict(question))
print(by_get.gpus, by_post.gpus, by_get.memory_per_gpu.total_bytes == by_post.memory_per_gpu.total_bytes)
"""

    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "1", "True"]


# Every check runs on every operation. What a schema cannot say: fields that contradict one another, names that the
# catalog lacks (422, 404), a version that must be stated (428), a hub that does not answer (502), an answer for each
# question of a batch, whatever became of it (200).
CHECKS: dict[str, Any] = {
    "positive_data_acceptance": {"expected-statuses": ["2xx", "4xx", "502", "503"]},
    "negative_data_rejection": {"expected-statuses": ["4xx", "502", "503"]},
    "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", "502", "503"]},
}
schema = schemathesis.openapi.from_dict(DOCUMENT, config=schemathesis.Config.from_dict({"checks": CHECKS}))


def generated_requests(operation_id: str) -> Any:
    """Return a test of one operation, under a name of its own."""

    @schema.include(operation_id=operation_id).parametrize()
    # Examples of single fields, put together, are whole questions that take their time; they are answered above.
    @hypothesis_settings(max_examples=15, deadline=None, phases=(Phase.reuse, Phase.generate, Phase.shrink))
    def generated(case: schemathesis.Case[Any], live_url: str) -> None:
        response = case.call(base_url=live_url, timeout=ANSWERED_WITHIN_S)

        case.validate_response(response)
        if response.status_code >= 400:
            assert response.headers["content-type"][0].startswith("application/problem+json")

    return generated


for _, _, operation in OPERATIONS:
    name = operation["operationId"]
    globals()[f"test_generated_requests_to_{name}_get_declared_answers"] = generated_requests(name)
