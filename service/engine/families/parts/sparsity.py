"""Which layers have experts: each rule reads its fields once and answers for all layers.

Sources:
    vLLM 0.33 model files: deepseek_v2.py (`first_k_dense_replace`, `moe_layer_freq`), qwen2_moe.py and
    qwen3_moe.py (`decoder_sparse_step`, `mlp_only_layers`), jamba.py, ernie45_moe.py.
"""

from collections.abc import Callable, Sequence

from service.engine.config_reader import ConfigReader, is_list

SparsityRule = Callable[[ConfigReader, int], Sequence[bool]]


def sparse_layers(reader: ConfigReader, num_layers: int, rule: SparsityRule) -> Sequence[bool]:
    """Return whether each layer has experts: as `mlp_layer_types` names it, by the rule beyond that list."""
    kinds = reader.raw("mlp_layer_types")
    named = [kind == "sparse" for kind in kinds[:num_layers]] if is_list(kinds) else []
    if len(named) == num_layers:
        return named
    return [*named, *rule(reader, num_layers)[len(named) :]]


def by_frequency(rest: SparsityRule) -> SparsityRule:
    """Return the rule of a `moe_layer_freq` that may be a list with a number per layer; else another rule."""

    def rule(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
        frequency = reader.raw("moe_layer_freq")
        if is_list(frequency):
            return [index < len(frequency) and bool(frequency[index]) for index in range(num_layers)]
        return rest(reader, num_layers)

    return rule


def _every_few(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
    """Return every `decoder_sparse_step`-th layer but those of `mlp_only_layers`."""
    only_dense = frozenset(reader.integers("mlp_only_layers") or ())
    layers = range(num_layers)
    sparse = [index not in only_dense for index in layers]
    if not any(sparse):
        return sparse
    step = reader.positive("decoder_sparse_step", default=1)
    return [sparse[index] and (index + 1) % step == 0 for index in layers]


# Every layer, or every n-th, but those that are named dense.
every_few: SparsityRule = by_frequency(_every_few)


def _after_first_dense(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
    frequency = reader.raw("moe_layer_freq")
    every = frequency if isinstance(frequency, int) and frequency > 0 else 1
    first = reader.integer("first_k_dense_replace", default=0)
    return [index >= first and index % every == 0 for index in range(num_layers)]


# The first few layers are dense; after them every one has experts, or every n-th.
first_dense: SparsityRule = by_frequency(_after_first_dense)


def first_dense_as(name: str) -> SparsityRule:
    """Return the same under another name, whatever `moe_layer_freq` says."""

    def rule(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
        first = reader.integer(name, default=0)
        return [index >= first for index in range(num_layers)]

    return rule


def periodic(period_name: str, period: int, offset_name: str, offset: int) -> SparsityRule:
    """Return the rule of a period and an offset in it, with the defaults of the config class."""

    def rule(reader: ConfigReader, num_layers: int) -> Sequence[bool]:
        every = reader.positive(period_name, default=period)
        at = reader.integer(offset_name, default=offset)
        return [index % every == at for index in range(num_layers)]

    return by_frequency(rule)
