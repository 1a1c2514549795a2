"""ModelOpt: what its exports say, of one algorithm or of many, and the cache that they ask for.

Sources:
    vLLM 0.33 `model_executor/layers/quantization/modelopt.py` (`QUANT_ALGOS`, each config's `from_config`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_mapping, unknown_kind
from service.engine.formats.scheme import MX_GROUP, NVFP4_GROUP, Quantization, Scheme, unknown_scheme
from service.engine.inputs import DeclaredCacheDtype

METHOD: Final = "modelopt"
# ModelOpt's blocks of fp8; the second name stands in lists of modules alone.
BLOCK_ALGORITHMS: Final = ("FP8_PB_WO", "FP8_BLOCK_SCALES")
BLOCK: Final = 128  # rows and columns
WEIGHTS_ALONE: Final = "W4A16_NVFP4"
NVFP4_ALONE: Final = "nvfp4 of weights alone"
ALGORITHMS: Final = "FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, W4A16_NVFP4, MXFP8, MIXED_PRECISION"
CACHES: Final[Mapping[str, DeclaredCacheDtype]] = {"FP8": "fp8", "NVFP4": "nvfp4"}


def modelopt(reader: ConfigReader, algorithm: str, ignored: tuple[str, ...]) -> Quantization:
    """Return the scheme of an export, by its algorithm.

    Raises:
        UnsupportedModelError: an algorithm that vLLM does not load, or groups of another length than its kernels'.
    """
    kv_cache_dtype = _cache(reader)
    stored = Quantization(scheme="none", method=METHOD, ignored=ignored, kv_cache_dtype=kv_cache_dtype)
    if algorithm == "FP8_PER_CHANNEL_PER_TOKEN":
        return replace(stored, scheme="fp8-channel", is_modelopt=True, weight_format="fp8")
    if algorithm == BLOCK_ALGORITHMS[0]:
        return replace(stored, scheme="fp8-block", block=BLOCK, is_modelopt=True, weight_format="fp8")
    if algorithm == "FP8":
        return replace(stored, scheme="fp8-tensor", is_static=True, weight_format="fp8")
    if algorithm in ("NVFP4", "NVFP4_AWQ", WEIGHTS_ALONE):
        _check_group(reader, NVFP4_GROUP)
        variant = NVFP4_ALONE if algorithm == WEIGHTS_ALONE else ""
        fp4 = replace(stored, scheme="nvfp4", block=NVFP4_GROUP, is_modelopt=True, weight_format="nvfp4")
        return replace(fp4, variant=variant)
    if algorithm == "MXFP8":
        _check_group(reader, MX_GROUP)
        return replace(stored, scheme="mxfp8", block=MX_GROUP, weight_format="fp8")
    if algorithm == "MIXED_PRECISION":
        return _mixed(reader, kv_cache_dtype)
    raise unknown_kind("quantization_config.quant_algo", f"{algorithm}, which vLLM does not load", ALGORITHMS)


def _cache(reader: ConfigReader) -> DeclaredCacheDtype | None:
    """Return the cache that ModelOpt's export asks for; of any other, engines keep the model's own.

    Source: vLLM 0.20 to 0.33 `utils/torch_utils.py` (`get_kv_cache_quant_algo_string`).
    """
    stated = reader.raw("kv_cache_scheme") or reader.raw("kv_cache_quant_algo")
    if not is_mapping(stated):
        return CACHES.get(str(stated).upper())
    match stated:
        case {"type": "float", "num_bits": 8, "dynamic": False}:
            return "fp8"
        case {"type": "float", "num_bits": 4}:
            return "nvfp4"
        case _:
            return None


def _check_group(reader: ConfigReader, size: int) -> None:
    """Refuse groups of another length than the format's, which is its kernels' own. [elements].

    Raises:
        UnsupportedModelError: such a length is stated.
    """
    stated = reader.raw("group_size")
    if stated is not None and stated != size:
        raise unknown_kind("quantization_config.group_size", stated, str(size))


def _mixed(reader: ConfigReader, kv_cache_dtype: DeclaredCacheDtype | None) -> Quantization:
    """Return a checkpoint whose modules have schemes of their own, by `quantized_layers`."""
    layers: list[tuple[str, Scheme, int]] = []
    for module, stated in (reader.mapping("quantized_layers") or {}).items():
        algorithm = str(ConfigReader(stated if is_mapping(stated) else {}).raw("quant_algo") or "").upper()
        if "NVFP4" in algorithm:
            layers.append((module, "nvfp4", 16))
        elif algorithm == "FP8":
            layers.append((module, "fp8-tensor", 0))
        elif algorithm in BLOCK_ALGORITHMS:
            layers.append((module, "fp8-block", BLOCK))
        elif algorithm == "MXFP8":
            layers.append((module, "mxfp8", 32))
        else:
            raise unknown_scheme(f"modelopt MIXED_PRECISION with {algorithm or 'no algorithm'}")
    if not layers:
        raise unknown_scheme("modelopt MIXED_PRECISION without quantized_layers")
    return Quantization(
        scheme="nvfp4",
        method=METHOD,
        block=16,
        kv_cache_dtype=kv_cache_dtype,
        is_modelopt=True,
        weight_format="nvfp4",
        mixed=tuple(layers),
    )
