"""What a config says of its quantization: where it stands, whether engines read it, and as what.

Source:
    vLLM 0.33 `transformers_utils/config.py` (`get_config`), `transformers_utils/model_arch_config_convertor.py`
    (`_normalize_quantization_config`), `config/model.py` (`_verify_quantization`: a method of "" is none).
"""

from collections.abc import Mapping
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping, text_reader
from service.engine.errors import MissingConfigFieldError
from service.engine.families.registry import REGISTRY
from service.engine.formats.scheme import KNOWN_METHODS

QUANTIZATION_NAMES: Final = ("quantization_config", "compression_config")
OF_MLX: Final = "quantization"  # where conversions for MLX state bits, which the engines here do not look for
BIT_NAMES: Final = ("bits", "w_bit", "load_in_4bit", "load_in_8bit")  # of integers, which nothing reads without method


def stated_quantization(config: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the quantization that the engine loads a config's weights with: the first that is stated at all.

    At the top; else in `hf_quant_config.json`, pasted from beside it; else in the language model's part. One without
    a method that the engine recognizes is loaded unquantized: ModelOpt's counts where `producer` names it and
    `quantization` has the algorithm, every other by its `quant_method`.

    Raises:
        MissingConfigFieldError: what is stated is no object.
    """
    stated = _stated(config)
    return as_loaded(config, stated) if stated is not None and _has_method(stated) else None


def cautions_of_quantization(config: Mapping[str, object]) -> tuple[str, ...]:
    """Return what a reader must know of a quantization that is stated and that engines do not read; nothing else.

    Raises:
        MissingConfigFieldError: it has the bits of integers, and no method: no engine loads such weights.
    """
    stated = _stated(config)
    if stated and _has_method(stated):
        return ()
    foreign = config.get(OF_MLX)
    name = _bits_of(stated or {}) or _bits_of(foreign if is_mapping(foreign) else {})
    if name is not None:
        raise MissingConfigFieldError(
            f"the config's quantization states {name} and no quant_method, without which no engine reads it",
            field="model_config.quantization_config.quant_method",
            accepted=KNOWN_METHODS,
        )
    if not stated:
        return ()
    told = "the config's quantization names no quant_method: vLLM does not read it, and loads the weights in 16 bits"
    return (f"{told}, as sized here; state quant_method where they are stored in fewer",)


def _bits_of(stated: Mapping[str, object]) -> str | None:
    """Return the name under which the bits of integers are stated, if they are."""
    return next((name for name in BIT_NAMES if stated.get(name)), None)


def _stated(config: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the quantization that counts, with a method or without."""
    reader = ConfigReader(config)
    inside = ConfigReader({name: text_reader(config).own(name) for name in QUANTIZATION_NAMES})
    stated = reader.mapping("quantization_config") or reader.mapping("hf_quant_config")
    if stated is not None:
        return stated
    places = (reader.mapping("compression_config"), *(inside.mapping(name) for name in QUANTIZATION_NAMES))
    return next((place for place in places if place is not None), None)


def _has_method(stated: Mapping[str, object]) -> bool:
    """Return whether the engine recognizes the method of a stated quantization."""
    if stated.get("quant_method"):
        return True
    producer, own = stated.get("producer"), stated.get("quantization")
    if not is_mapping(own):
        return False
    is_modelopt = is_mapping(producer) and producer.get("name") == "modelopt"
    return (is_modelopt and own.get("quant_algo") is not None) or "modelopt_quant_config" in own


def as_loaded(config: Mapping[str, object], stated: Mapping[str, object]) -> Mapping[str, object]:
    """Return a quantization as the loader of the config's class takes it."""
    names = config.get("architectures")
    for name in names if is_list(names) else ():
        family = REGISTRY.families.get(name) if isinstance(name, str) else None
        if family is not None and family.requantizes is not None:
            return family.requantizes(stated)
    return stated
