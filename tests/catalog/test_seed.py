"""The seed files: complete, sourced, and loaded idempotently."""

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, select

from service.catalog.reading import read_catalog
from service.catalog.seed import seed_catalog
from service.catalog.seed_files import seed_entries
from service.catalog.snapshot import Snapshot, build_snapshot
from service.catalog.store import current_version, raise_revision
from service.catalog.tables import GpuRow, ModelRow, OfferRow
from service.engine.config_reader import text_reader
from service.engine.formats.quantization import parse_quantization
from service.engine.memory.parameters import num_parameters
from tests.conftest import seed_database

PROVIDERS = {"aws", "gcp", "azure", "lambda", "runpod", "coreweave"}
GPUS = [
    "t4",
    "v100",
    "a10g",
    "l4",
    "l40s",
    "a100",
    "a100-40gb",
    "h100",
    "h100-pcie",
    "h100-nvl",
    "h200",
    "gh200",
    "b200",
    "b300",
    "gb200",
    "gb300",
    "rtx-3090",
    "rtx-4090",
    "rtx-5090",
    "rtx-6000-ada",
    "rtx-pro-6000",
    "a6000",
    "mi300x",
    "mi325x",
    "mi355x",
    "gaudi3",
    "gb10",
    "rtx-4090d",
    "rtx-5060-ti",
    "rtx-3060",
    "rtx-4070-ti",
    "rtx-5000-ada",
    "rtx-pro-4500",
    "rtx-pro-5000",
    "rtx-6000d",
    "r9700",
    "arc-pro-b70",
    "strix-halo",
    "jetson-orin",
    "mi250",
]
RENTED = [
    "h100",
    "h200",
    "b200",
    "a100",
    "a100-pcie",
    "h100-pcie",
    "l40s",
    "l4",
    "rtx-4090",
    "rtx-5090",
    "rtx-pro-6000",
]
MODELS = [
    "llama-2-7b",
    "llama-3.1-70b",
    "llama-4-scout",
    "qwen2.5-7b",
    "qwen3-32b",
    "qwen3-next-80b-a3b",
    "qwen3.5-397b-a17b",
    "qwen3.6-27b",
    "mistral-7b",
    "mixtral-8x7b",
    "deepseek-v2",
    "deepseek-v3",
    "deepseek-r1",
    "deepseek-v3.2",
    "kimi-k2",
    "kimi-k2.5",
    "glm-4.5",
    "glm-5",
    "gpt-oss-20b",
    "gpt-oss-120b",
    "gemma-2-27b",
    "gemma-3-27b",
    "gemma-4-31b",
    "phi-4",
    "nemotron-h-56b",
    "granite-4.0-h-small",
    "minimax-m2",
    "minimax-m2.5",
    "minimax-m3",
    "qwen3.5-9b",
    "Qwen/Qwen3.8-27B",
    "gemma-4-e2b",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "ministral-3-8b",
    "devstral-small-2",
    "qwen2.5-vl-7b",
    "deepseek-r1-distill-qwen-14b",
    "glm-4.7-flash",
    "seed-oss-36b",
    "nemotron-nano-9b-v2",
    "kimi-k2-thinking",
    "kimi-k2.6",
    "qwen3-coder-next",
    "deepseek-ai/DeepSeek-V3.2-Exp",
    "glm-5.3-flash",
    "qwen3.8-flash-next",
    "step-3.7-flash",
    "qwen2-0.5b",
    "Qwen/Qwen2.5-32B",
    "codellama-34b",
    "deepseek-ocr",
    "deepseek-r1-0528-qwen3-8b",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5",
    "gemma-4-12b",
    "kimi-dev-72b",
    "kimi-vl-a3b",
    "gemma-7b",
    "granite-3.1-2b",
    "granite-3.1-8b",
    "phi-2",
    "qwen1.5-moe",
    "yi-34b",
    "mistralai/Mistral-7B-Instruct-v0.2",
]
# Totals of the safetensors as huggingface.co prints them, and what of them the engine does not hold: draft layers,
# keys and values of layers that read another layer's, one scale per layer or per matrix.
TOTALS = {
    "qwen3.5-0.8b": (873_438_784, 20_452_864),
    "qwen3.5-2b": (2_274_069_824, 60_828_160),
    "qwen3.5-4b": (4_659_865_088, 120_599_552),
    "qwen3.5-9b": (9_653_104_368, 243_290_624),
    "qwen3.8-27b": (27_781_427_952, 424_699_392),
    "gemma-4-e2b-it": (5_123_178_051, 16 * 786_688 + 4 * 1_573_376 + 35),
    "gemma-4-e4b-it": (7_996_156_490, 15 * 2_621_696 + 3 * 5_243_392 + 42),
    "ministral-3-3b-instruct-2512": (3_849_090_048, 0),
    "ministral-3-8b-instruct-2512": (8_918_026_716, 34 * 7 * 2),
    "mistral-small-3.1-24b-instruct-2503": (24_011_361_280, 0),
    "phi-4-mini-instruct": (3_836_021_760, 0),
    "granite-4.0-micro": (3_402_836_480, 0),
    "minicpm5-1b": (1_080_632_832, 0),
    "olmo-3-7b-instruct": (7_298_011_136, 0),
    "seed-oss-36b-instruct": (36_151_104_512, 0),
    "nvidia-nemotron-nano-9b-v2": (8_888_227_328, 0),
    "qwen3-coder-30b-a3b-instruct": (30_532_122_624, 0),
    "qwen2.5-vl-7b-instruct": (8_292_166_656, 0),
    "hunyuan-a13b-instruct": (80_393_183_232, 0),
}
# What the hub counts beyond what the engine holds, of totals that entries quote to the parameter. Negative: the engine
# holds more, the values of layers whose checkpoint shares them with the keys.
UNHELD = {
    "aria": 2_304,  # the tower's last norm
    "gemma-4-12b-it": 48 - 8 * 512 * 3840,  # scalars; values of the full layers
    "gemma-4-e2b-it": 18_880_547,  # as in TOTALS
    "gemma-4-e4b-it": 55_055_658,
    "granite-vision-3.2-2b": 15_240_656,  # the tower's pooling head and last norm
    "glm-5.3-flash": 7_432_592_416,  # its draft layer
    "hunyuanocr": 120_818 * 1_024,  # the tied head, stored twice
    "inkling": 5_260_445_696 - 75_497_472 + 74,  # its eight draft layers, smaller than they are built; scales
    "inkling-small": 2_231_912_448 + 50,  # the same, as they are built
    "intern-s2-397b": 6_595_568_128,  # its draft layer
    "intern-s2-preview": 844_640_768 + 133_849_040,  # its draft layer; the encoder of time series, which is not loaded
    "kimi-k2-thinking": 7_808,  # rotary frequencies
    "kimi-vl-a3b-instruct": 1_728,
    "ling-3.0-flash": 3_072_194_048,  # its draft layer
    "llava-1.5-7b": 12_596_224 + 2_048,  # the tower's last layer and norm, which are not read
    "llava-onevision-qwen2-72b-ov": 2_304,  # the tower's last norm
    "ovis2-8b": 1_536,
    "mimo-v2.5": 987_820_224 + 18_717_312,  # three prediction modules; scales of blocks
    "nemotron-3-nano-omni-30b-a3b": 534,  # a few buffers, beside corrections of scores
    # of packed images' 32,768 positions; SigLIP's pooling head: a probe, attention, a norm and two matrices
    "paddleocr-vl": 32_768 * 1_152 + 15_238_352,
    "qwen3.8-flash-next": 2_607_150_848 + 35,  # its draft layer; primes, offsets and multipliers of n-grams
    "solar-open-100b": -48 * 128,  # corrections of scores, which the total leaves out
    "step-3.7-flash": 2_428_171_008,  # three draft layers
}
# Billions as the publisher prints them.
ROUNDED = {
    "qwen2.5-vl-72b-instruct": 73.4,
    "internvl3-78b": 78.4,
    "ministral-3-14b-instruct-2512": 13.9,
    "exaone-4.0-32b": 32.0,
    "kimi-linear-48b-a3b-instruct": 49.1,
    "glm-4.5v": 108,
    "ling-mini-2.0": 16.3,
    "dots.llm1.inst": 142.8,
    "ernie-4.5-21b-a3b-pt": 21.8,
    "longcat-flash-chat": 560,
    "lfm2-1.2b": 1.17,
    "lfm2-2.6b": 2.57,
    "lfm2-8b-a1b": 8.34,
    "apertus-70b-instruct-2509": 70.6,
    "falcon-h1-7b-instruct": 7.59,
    "falcon-h1-34b-instruct": 33.6,
    "granite-4.0-h-micro": 3.19,
    "nvidia-nemotron-nano-12b-v2": 12.3,
    "trinity-mini": 26.1,
    "kimi-k2-instruct-0905": 1026,
    "kimi-k2-thinking": 1026,
    "step-3.7-flash": 198,
    "dbrx-instruct": 132,
    "opt-125m": 0.125,
    "olmoe-1b-7b": 6.9,
    "moonlight-16b-a3b": 16,
    "aya-expanse-32b": 32.3,
    "internlm3-8b-instruct": 8.8,  # 17.6 GB of weights in 16 bit
}


def test_what_was_seeded_is_read_back_and_seeding_twice_changes_nothing(database: Engine, catalog: Snapshot) -> None:
    with Session(database) as session, session.begin():
        first = seed_catalog(session)
        version = current_version(session)

    with Session(database) as session, session.begin():
        snapshot = build_snapshot(read_catalog(session).entries)

        assert set(snapshot.model_entries) == set(catalog.model_entries)
        assert snapshot.gpu_entries["h100-sxm-80gb"].figures == catalog.gpu_entries["h100-sxm-80gb"].figures
        assert session.exec(select(ModelRow)).first() is not None
        assert session.exec(select(OfferRow)).first() is not None
        row = session.get(GpuRow, "h100-sxm-80gb")
        assert row is not None
        assert row.memory_bytes == 81_559 << 20  # nvidia-smi; more than 32 bits hold

    with Session(database) as session, session.begin():
        second = seed_catalog(session)

        assert first.changed > 0
        assert second.changed == 0
        assert current_version(session) == version
        assert version[1] == 1


def test_the_revision_only_rises(database: Engine) -> None:
    with Session(database) as session, session.begin():
        revisions = [raise_revision(session) for _ in range(3)]

    assert revisions == [1, 2, 3]


def test_the_database_refuses_what_makes_no_sense(database_url: str, database: Engine) -> None:
    seed_database(database_url)
    with Session(database) as session:
        row = session.get(GpuRow, "h100-sxm-80gb")
        assert row is not None
        row.memory_bytes = 0
        session.add(row)
        with pytest.raises(IntegrityError):
            session.flush()


def test_the_catalog_is_as_large_as_promised() -> None:
    models, gpus, offers = seed_entries()

    assert len(models) >= 420
    assert len(gpus) >= 75
    assert {offer.provider for offer in offers} >= PROVIDERS


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_is_found_by_the_name_people_type(catalog: Snapshot, name: str) -> None:
    assert catalog.gpu(name).memory_bytes > 0


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_found_by_the_name_people_type(catalog: Snapshot, name: str) -> None:
    assert catalog.model_id(name) in catalog.model_entries


@pytest.mark.parametrize(("name", "printed"), TOTALS.items(), ids=TOTALS)
def test_a_config_adds_up_to_the_total_the_hub_prints(catalog: Snapshot, name: str, printed: tuple[int, int]) -> None:
    total, unheld = printed

    assert num_parameters(catalog.model(name).architecture) == total - unheld


@pytest.mark.parametrize(("name", "billions"), ROUNDED.items(), ids=ROUNDED)
def test_a_config_adds_up_to_what_the_publisher_rounds_to(catalog: Snapshot, name: str, billions: float) -> None:
    assert num_parameters(catalog.model(name).architecture) / 1e9 == pytest.approx(billions, rel=5e-3)


def test_an_entry_adds_up_to_the_total_it_quotes_from_the_hub(catalog: Snapshot) -> None:
    quoted = {
        entry.id: entry.num_parameters
        for entry in catalog.entries.models
        if entry.num_parameters is not None and entry.num_parameters % 10_000_000 and not catalog.refusal(entry.id)
    }
    apart = {name: total - num_parameters(catalog.model(name).architecture) for name, total in quoted.items()}

    assert len(quoted) >= 100
    assert {name: difference for name, difference in apart.items() if difference} == UNHELD


def test_every_figure_has_a_source_and_a_date() -> None:
    models, gpus, offers = seed_entries()
    sources = [
        *(model.source for model in models),
        *(checkpoint.source for model in models for checkpoint in model.checkpoints),
        *(figure.source for gpu in gpus for figure in gpu.figures.values()),
        *(offer.source for offer in offers),
    ]

    assert all(source.url.startswith("http") and source.checked_on for source in sources)


@pytest.mark.parametrize("gpu", RENTED)
def test_a_gpu_people_rent_is_offered_by_one_two_four_and_eight(catalog: Snapshot, gpu: str) -> None:
    counts = {offer.gpu_count for offer in catalog.offers if offer.gpu == catalog.gpu(gpu).id}

    assert counts >= {1, 2, 4, 8}


def test_no_price_is_dated_after_its_source_was_read() -> None:
    assert all(offer.as_of <= offer.source.checked_on for offer in seed_entries()[2])


def test_prices_are_known_in_europe_and_asia_too() -> None:
    regions = {offer.region for offer in seed_entries()[2]}

    assert {"us-east-1", "eu-north1", "ap-south-1"} <= regions


def test_memory_is_below_what_is_marketed_in_binary_units_and_peaks_are_dense() -> None:
    _, gpus, _ = seed_entries()

    for gpu in gpus:
        usable = gpu.figures.get("usable_memory_bytes", gpu.figures["memory_bytes"])
        assert usable.value <= gpu.figures["memory_bytes"].value
        if "peak_bf16_flop_per_s" in gpu.figures and "peak_fp8_flop_per_s" in gpu.figures:
            ratio = gpu.figures["peak_fp8_flop_per_s"].value / gpu.figures["peak_bf16_flop_per_s"].value
            # Gaudi runs both at one rate; everybody else doubles or more.
            assert 1.9 <= ratio <= 4.1 or gpu.vendor == "intel", gpu.id


def test_only_models_with_known_structures_are_sizable(catalog: Snapshot) -> None:
    told = {entry.id: catalog.refusal(entry.id) for entry in catalog.entries.models}
    refused = {name: reason for name, reason in told.items() if reason is not None}

    assert refused == {}


def test_every_checkpoint_says_the_format_that_its_quantization_is() -> None:
    apart = {
        model.id
        for model in seed_entries()[0]
        for checkpoint in model.checkpoints
        if parse_quantization(checkpoint.quantization_config).weight_format not in (None, checkpoint.weight_format)
    }

    # Named by their experts, which lie in four bits.
    assert apart == {
        "deepseek-v4-flash",
        "deepseek-v4-pro",
        "deepseek-v4.1-flash",
        "ling-3.0-flash",
        "ling-3.0-flash-vl",
        "mimo-v2.6-flash-rl",
        "mimo-v2.6-pro-rl",
    }


def test_a_checkpoint_has_one_entry() -> None:
    ids = [checkpoint.hf_id.lower() for model in seed_entries()[0] for checkpoint in model.checkpoints]

    assert len(ids) == len(set(ids))


def test_configs_state_their_sizes() -> None:
    for model in seed_entries()[0]:
        assert text_reader(model.config).positive("vocab_size") > 0


def test_a_number_of_a_config_is_no_text() -> None:
    """YAML 1.1 reads `1e-06` as a word; whoever hands the config to an engine is refused."""
    texts = [text for model in seed_entries()[0] for text in _texts(model.config)]
    texts += [text for model in seed_entries()[0] for entry in model.checkpoints for text in _texts(entry.config or {})]

    assert "silu" in texts
    assert [text for text in texts if re.fullmatch(r"\d+(\.\d*)?e[-+]?\d+", text)] == []


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from (text for each in value.values() for text in _texts(each))
        case list():
            yield from (text for each in value for text in _texts(each))


def test_offers_say_on_whose_servers_they_run_and_for_how_long_they_bind() -> None:
    offers = seed_entries()[2]

    assert {offer.tier for offer in offers} == {"secure", "community"}
    assert {offer.purchase for offer in offers} == {"on-demand", "reserved", "spot"}
    assert all((offer.purchase == "reserved") == (offer.commitment_months is not None) for offer in offers)
    assert {offer.provider for offer in offers if offer.tier == "community"} >= {"runpod", "vast", "salad", "akash"}
    assert not [offer.id for offer in offers if offer.tier == "community" and offer.provider in ("aws", "azure", "gcp")]


def test_nobody_asks_two_prices_for_the_same() -> None:
    asked = [
        (offer.provider, offer.instance_type, offer.region, offer.gpu, offer.purchase, offer.commitment_months)
        for offer in seed_entries()[2]
    ]

    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    ("offer_id", "usd_per_hour"),
    [
        ("gcp-a3-highgpu-8g-us-central1", 88.49),
        ("crusoe-a100-80gb-sxm-1gpu-any", 2.30),
        ("crusoe-a100-80gb-pcie-1gpu-any", 2.00),
        ("crusoe-l40s-1gpu-any", 1.50),
        ("crusoe-mi300x-1gpu-any", 3.45),
        ("crusoe-a40-1gpu-any", 0.90),
        ("crusoe-a100-40gb-pcie-1gpu-any", 1.45),
        ("nebius-h100-1gpu-any", 3.85),
        ("nebius-h200-1gpu-any", 4.50),
        ("nebius-b200-1gpu-any", 7.15),
    ],
)
def test_prices_are_those_of_the_dated_public_lists(catalog: Snapshot, offer_id: str, usd_per_hour: float) -> None:
    """Read on 2026-11-21 in the lists that offers.yaml names."""
    assert catalog.offer_entries[offer_id].usd_per_hour == pytest.approx(usd_per_hour, abs=5e-3)


# Mistral Small 3.2 in vLLM 0.11 with 16,000 tokens of context: 184,832 tokens of cache, 11.55 requests at once, which is
# one over the other, as no window lets a request hold fewer:
# https://github.com/llm-d-incubation/llm-d-planner/blob/main/docs/empirical-vllm-memory-results.md
# "a sliding window attention of 4,096 tokens": https://huggingface.co/bigcode/starcoder2-15b
@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("mistral-small-3.2-24b", 0),
        ("mistral-medium-3.5-128b", 0),
        ("apriel-nemotron-15b-thinker", 0),
        ("starcoder2-3b", 4_096),
        ("starcoder2-15b", 4_096),
    ],
)
def test_a_window_is_stated_where_leaving_it_out_says_otherwise(catalog: Snapshot, name: str, window: int) -> None:
    """A class of transformers has a window of its own for configs that state none: 4,096 tokens of Mistral's."""
    windows = {getattr(mixer, "sliding_window", None) or 0 for mixer in catalog.model(name).architecture.mixers}

    assert windows == {window}
