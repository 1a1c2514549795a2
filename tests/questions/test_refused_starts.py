"""What the engine refuses, `/size` refuses, and `/recommend` lists nowhere; what it starts, is listed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from service.engine import EngineError
from service.questions.recommend import RecommendQuery
from service.questions.size import SizeQuery
from service.questions.sources import Sources

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("refused_starts.yaml").read_text("utf-8"))
# One GPU of every compute capability.
GPUS = {
    "7.0": "v100-sxm2-32gb", "7.5": "t4", "8.0": "a100-sxm-80gb", "8.6": "a40", "8.7": "jetson-agx-orin", "8.9": "l40s",
    "9.0": "h100-sxm-80gb", "10.0": "b200-sxm-180gb", "10.3": "b300-sxm-288gb", "11.0": "jetson-agx-thor",
    "12.0": "rtx-5090", "12.1": "gb10",
}  # fmt: skip
LOAD = {"concurrent_requests": 2, "input_tokens": 200, "output_tokens": 50}
STARTS = [
    pytest.param(row, version, id=f"{row['source'][:40]} {version}") for row in ROWS for version in row["versions"]
]


@pytest.mark.parametrize(("row", "version"), STARTS)
def test_no_option_is_one_that_the_engine_refuses(sources: Sources, row: dict[str, Any], version: str) -> None:
    refused = {GPUS[capability] for capability in row["refused"]}
    asked = refused if row.get("alone") else set(GPUS.values())
    query = RecommendQuery(**row["asked"], **LOAD, engine_version=version, gpus=sorted(asked), limit=100)

    answer = query.answer(sources).result

    assert {option.gpu for option in answer.options} == asked - refused
    assert {each.gpu for each in answer.rejected} >= refused


@pytest.mark.parametrize(("row", "version"), STARTS)
def test_asked_for_one_by_one_each_is_refused(sources: Sources, row: dict[str, Any], version: str) -> None:
    fields = {"model": row["asked"]["model"], "engine_version": version, **LOAD}
    one = {field: row["asked"].get(f"{field}s", [None])[0] for field in ("weight_format", "kv_cache_dtype")}
    stated = {field: value for field, value in one.items() if value is not None}

    for capability in row["refused"]:
        with pytest.raises(EngineError, match="vLLM"):
            SizeQuery(gpu=GPUS[capability], **fields, **stated).answer(sources)
