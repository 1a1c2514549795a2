"""A notebook is read by what its cells printed."""

import json
from typing import Any

import pytest

from service.measurements.observed import UnreadableTextError
from service.measurements.reading import read_measurement

GIB = 1 << 30
# https://github.com/trietnguyeminh/Submission---EXACT--IJCNN, v12-1-inference.ipynb, and cells around it.
WEIGHTS = (
    "(Worker_TP0 pid=248) INFO 05-31 13:14:32 [model_runner.py:295] Model loading took 7.64 GiB and 31.943157 seconds\n"
)
CACHE = "(Worker_TP0 pid=248) INFO 05-31 13:14:43 [gpu_worker.py:466] Available KV cache memory: 4.11 GiB\n"
IMAGE = {"output_type": "display_data", "data": {"image/png": "iVBOR" * 100_000, "text/plain": ["<Figure>"]}}
CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "source": ["Model loading took 1 GiB"]},
    {"cell_type": "code", "source": "LLM(model, gpu_memory_utilization=0.85)", "outputs": [IMAGE]},
    {"cell_type": "code", "source": [], "outputs": [{"output_type": "stream", "text": [WEIGHTS, CACHE]}]},
]


def test_a_notebook_is_read_by_its_code_and_what_it_printed() -> None:
    observed = read_measurement(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": CELLS}))

    assert observed.figures["weight_bytes"].value == 7.64 * GIB
    assert observed.figures["kv_cache_bytes"].value == 4.11 * GIB
    assert observed.settings == {"engine": "vllm", "gpu_memory_utilization": 0.85}


@pytest.mark.parametrize("text", ['{"nbformat": 4, "cells": []}', '{"nbformat": 4}', '{"nbformat": 4, "cells": [1]'])
def test_a_notebook_that_printed_nothing_is_refused(text: str) -> None:
    with pytest.raises(UnreadableTextError):
        read_measurement(text)
