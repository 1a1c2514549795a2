"""MiMo-V2 with towers, against what headers of its files state: elements by dtype, tensor by tensor."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.memory.parameters import num_parameters
from service.questions.capacity import CapacityQuery
from service.questions.sources import PastedModels, Sources

# Three prediction modules of a checkpoint, which are no part of the model as it is served without a draft: a report on
# the tensors of MiMo-V2.5 and MiMo-V2.5-Pro, whose widths those of V2.6 have.
FLASH_MODULES = {"16": 3 * (2 * 4_096 * 8_192 + 5 * 4_096 + 64), "8": 3 * (3 * 4_096 * 16_384 + 14_848 * 4_096)}
PRO_MODULES = {
    "16": 3 * (6_144 * 12_288 + 6_144 * 16_384 + 5 * 6_144 + 128), "8": 3 * (3 * 6_144 * 16_384 + 27_136 * 6_144),
}  # fmt: skip
# Elements in 16 bits and in FP8, bytes of four bits with their scales, and corrections of scores in FP32.
PRINTED = {
    "mimo-v2.6-flash-rl": (4_101_308_032, 3_859_808_256, 160_859_947_008, 47 * 256, FLASH_MODULES),
    "mimo-v2.6-pro-rl": (10_647_286_656, 13_378_781_184, 531_351_207_936, 69 * 384, PRO_MODULES),
}


@pytest.mark.parametrize(("name", "printed"), PRINTED.items(), ids=PRINTED)
def test_a_model_has_as_many_elements_as_the_headers_of_its_files(
    catalog: Snapshot, name: str, printed: tuple[int, int, int, int, dict[str, int]]
) -> None:
    half, eighth, packed, corrections, modules = printed
    experts = packed * 32 // 17  # 32 of them in 16 bytes, and one of their scale

    assert num_parameters(catalog.model(name).architecture) == (
        half - modules["16"] + eighth - modules["8"] + experts + corrections
    )


@pytest.mark.parametrize(
    ("name", "ranks", "printed"),
    [
        ("mimo-v2.6-flash-rl", 4, 172_923_364_096),
        ("mimo-v2.6-pro-rl", 8, 566_027_990_784),
        ("mimo-v2.5", 4, 293.40 * 2**30),
        ("mimo-v2.5-pro", 8, 962.40 * 2**30),
    ],
)
def test_weights_are_as_heavy_as_the_files(catalog: Snapshot, name: str, ranks: int, printed: float) -> None:
    sources = Sources(catalog=catalog, timers=None, pasted_models=PastedModels())

    answer = CapacityQuery(model=name, gpu="b300", gpu_count=ranks, tensor_parallel_size=ranks).answer(sources).result

    assert ranks * answer.memory_per_gpu.weight_bytes == pytest.approx(printed, rel=0.012)


def test_a_config_without_towers_has_none_and_codes_of_other_channels_are_refused(catalog: Snapshot) -> None:
    config = dict(catalog.model_entries["mimo-v2.5"].config)
    audio = {**config["audio_config"], "speech_vocab_size": "1280-1280"}

    bare = parse_architecture({name: value for name, value in config.items() if name != "vision_config"})

    assert bare.encoder is None
    with pytest.raises(UnsupportedModelError, match="speech_vocab_size has"):
        parse_architecture({**config, "audio_config": audio})
