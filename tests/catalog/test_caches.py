"""What models of the catalog keep of a token, by hand from published layers, heads and widths, two bytes an element."""

import pytest

from service.catalog.snapshot import Snapshot
from service.questions.capacity import CapacityQuery
from service.questions.sources import PastedModels, Sources


@pytest.mark.parametrize(
    ("model", "bytes_per_token"),
    [
        ("devstral-2-123b-instruct-2512", 88 * 8 * 128 * 2 * 2),
        ("lfm2-vl-1.6b", 6 * 8 * 64 * 2 * 2),  # the other ten layers are convolutions
        ("jamba2-3b", 2 * 1 * 128 * 2 * 2),  # the other 26 layers are recurrences
        ("mistral-small-4-119b-2603", 36 * (256 + 64) * 2),  # latents
        ("deepseek-vl2-small", 27 * (512 + 64) * 2),
        ("deepseek-vl2-tiny", 12 * 10 * 128 * 2 * 2),  # of the three the one without latents
        ("step3", 61 * 1 * 256 * 2 * 2),  # one head of keys for all
        ("bielik-11b-v2.3-instruct", 50 * 8 * 128 * 2 * 2),
        ("k2-65b", 80 * 64 * 128 * 2 * 2),
        ("llava-onevision-qwen2-7b-ov", 28 * 4 * 128 * 2 * 2),
        ("kanana-1.5-15.7b-a3b-instruct", 32 * 8 * 128 * 2 * 2),
        ("qianfan-ocr", 36 * 8 * 128 * 2 * 2),
    ],
)
def test_a_token_takes_what_its_layers_keep(catalog: Snapshot, model: str, bytes_per_token: int) -> None:
    asked = CapacityQuery(model=model, gpu="h200", gpu_count=8, input_tokens=500, output_tokens=100)

    answer = asked.answer(Sources(catalog=catalog, timers=None, pasted_models=PastedModels()))

    assert answer.result.kv_cache.bytes_per_token == bytes_per_token
