"""Weights of the layers that draft.

Source: vLLM 0.33 `model_executor/models/*_mtp.py`, `llama_eagle.py`, `llama_eagle3.py`, and
`v1/worker/gpu/spec_decode/eagle/utils.py` for what is shared with the model.
"""

from dataclasses import replace

from service.engine.arithmetic import ceil_div, round_up
from service.engine.formats.matrix import Matrix
from service.engine.inputs import Layout
from service.engine.layers import DraftHead, GroupedQueryAttention
from service.engine.memory.matrices import VOCABULARY_PADDING, layer_matrices

INDEX_BYTES = 8  # of one entry of the map between vocabularies


def draft_matrices(head: DraftHead, layout: Layout) -> list[Matrix]:
    """Return what the last pipeline stage holds of a draft, besides what it shares with the model.

    Each module has a projection of the joined states, norms, and now and then an output head. Behind
    pipeline stages the draft keeps an embedding table of its own.
    """
    matrices: list[Matrix] = []
    for layer, module in zip(head.body.layers, head.layer_modules, strict=True):
        own = f"model.layers.{layer.index}."
        for it in layer_matrices(head.body, layer, layout):
            is_linear = it.is_linear and not it.module.endswith(head.unquantized)
            matrices.append(replace(it, module=it.module.replace(own, module, 1), is_linear=is_linear))
    matrices += [replace(it, count=head.num_modules * it.count) for it in _around(head, layout)]
    if layout.pipeline_parallel_size > 1:
        matrices.append(_table(head, layout, head.body.vocab_size))
    return matrices


def _around(head: DraftHead, layout: Layout) -> list[Matrix]:
    """Return what one module has around its layers."""
    body, tp = head.body, layout.tensor_parallel_size
    hidden = body.hidden_size
    streams = body.residual_streams
    matrices = [
        Matrix(
            module=head.projection_module or "model.draft_projection",
            rows=hidden // tp if head.is_projection_split else hidden,
            columns=head.joined_states * hidden,
            is_linear=bool(head.projection_module),
            scale_bytes=head.projection_scale_bytes,
        ),
        Matrix(module="model.draft_norms", rows=head.num_norms * hidden, columns=1, is_linear=False),
    ]
    if streams > 1:
        elements = streams * streams * hidden + streams + 1
        matrices.append(
            Matrix(module="model.draft_streams", rows=elements, columns=1, is_linear=False, element_bytes=4)
        )
    if head.head_vocab_size:
        matrices.append(_table(head, layout, head.head_vocab_size))
    if head.is_vocab_mapped:
        rows = head.head_vocab_size
        matrices.append(
            Matrix(module="model.draft_vocabulary", rows=rows, columns=1, is_linear=False, element_bytes=INDEX_BYTES)
        )
    if head.widened_inputs:
        rows = sum(
            _query_key_value_rows(it, tp) for it in body.layers[0].mixers if isinstance(it, GroupedQueryAttention)
        )
        matrices.append(Matrix(module="model.draft_inputs", rows=rows, columns=head.widened_inputs, is_linear=False))
    return matrices


def _query_key_value_rows(attention: GroupedQueryAttention, tp: int) -> int:
    key_value_heads = max(1, attention.num_key_value_heads // tp)
    return (attention.num_attention_heads // tp + 2 * key_value_heads) * attention.head_dim


def _table(head: DraftHead, layout: Layout, vocab_size: int) -> Matrix:
    rows = ceil_div(round_up(vocab_size, VOCABULARY_PADDING), layout.tensor_parallel_size)
    return Matrix(module="model.draft_table", rows=rows, columns=head.body.hidden_size, is_linear=False)
