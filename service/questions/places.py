"""Where in a pasted config a field stands that a refusal names alone."""

from collections.abc import Iterator, Mapping
from typing import Final

from service.engine.errors import EngineError

CONFIG: Final = "model_config."
DEEPEST: Final = 8  # levels; published configs have five at most
MOST_SHOWN: Final = 160  # characters of a path, whose names are the caller's own


def placed(refusal: EngineError, config: Mapping[str, object]) -> EngineError:
    """Return a refusal whose field is named by its whole path, where one level of a config alone states it.

    >>> told = EngineError("the config's num_bits is 'x'", field="model_config.num_bits")
    >>> placed(told, {"quantization_config": {"config_groups": {"g": {"weights": {"num_bits": "x"}}}}}).field
    'model_config.quantization_config.config_groups.g.weights.num_bits'
    """
    return type(refusal)(
        refusal.detail,
        field=_whole_path(refusal.field, config),
        accepted=refusal.accepted,
        others=tuple(placed(other, config) for other in refusal.others),
    )


def _whole_path(field: str, config: Mapping[str, object]) -> str:
    name = field.removeprefix(CONFIG)
    if name == field or name in config:
        return field
    paths = list(_paths(name, config, DEEPEST))
    return f"{CONFIG}{paths[0]}" if len(paths) == 1 and len(paths[0]) <= MOST_SHOWN else field


def _paths(name: str, config: Mapping[str, object], levels: int) -> Iterator[str]:
    """Yield the paths of a name on the levels below."""
    for key, value in config.items():
        if not isinstance(value, Mapping) or not levels:
            continue
        if name in value:
            yield f"{key}.{name}"
        yield from (f"{key}.{path}" for path in _paths(name, value, levels - 1))
