"""Which layers draft, where drafts are asked for, and what their tokens reserve in the cache.

Sources:
    vLLM 0.33 `config/speculative.py`, `config/vllm.py` (`num_lookahead_tokens`),
    `model_executor/models/{llama_eagle,llama_eagle3}.py`.
"""

from typing import Final, cast

from service.engine.derived import derived
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import EngineSettings, SpeculativeMethod
from service.engine.layers import Architecture, DecoderLayer, DenseMlp, DraftHead, Mixer

MOST_COUNTS: Final = 16  # of drafted tokens that are asked for of one model
EAGLE3_VOCABULARY = 32_000  # of the published heads, such as yuhuili/EAGLE3-LLaMA3.1-Instruct-8B
EAGLE3_STATES = 3  # of an early, a middle and a late layer


def default_method(architecture: Architecture) -> SpeculativeMethod:
    """Return how drafts are made when nobody states it: with the checkpoint's own modules, else an EAGLE-3 head."""
    return "mtp" if architecture.mtp is not None else "eagle3"


def check_drafts(architecture: Architecture, method: SpeculativeMethod, num_speculative_tokens: int) -> None:
    """Raise InvalidQuestionError, naming the field, if the engine or this program has no such draft.

    Several modules take turns, so more tokens than modules must be a whole multiple of them.
    """
    head = draft_head(architecture, method)
    modules = head.num_modules if head is not None and method == "mtp" else 1
    if num_speculative_tokens > modules and num_speculative_tokens % modules:
        raise InvalidQuestionError(
            f"num_speculative_tokens {num_speculative_tokens} is not a multiple of the model's {modules} "
            "prediction modules",
            field="num_speculative_tokens",
            accepted=f"1 to {modules}, or a multiple of {modules}",
        )


def draft_of(architecture: Architecture, settings: EngineSettings) -> DraftHead | None:
    """Return the layers that draft under these settings; None without drafts, or where no layer makes them."""
    if not settings.num_speculative_tokens or settings.speculative_method is None:
        return None
    head = draft_head(architecture, settings.speculative_method)
    return head if head is None else _as_built(head, settings.num_speculative_tokens)


def _as_built(head: DraftHead, num_speculative_tokens: int) -> DraftHead:
    """Return no more modules than tokens are drafted, of a head whose others are left unbuilt.

    Source: vLLM 0.33 `models/inkling/nvidia/mtp.py` (`_select_mtp_depth_count`).
    """
    modules, body = num_speculative_tokens, head.body
    if not head.builds_as_drafted or modules >= head.num_modules:
        return head

    kept = body.derived.by("built as drafted", MOST_COUNTS)
    return cast("DraftHead", kept.get_or(modules, lambda: head.of_layers(range(modules), modules)))


def drafter_fraction(architecture: Architecture, settings: EngineSettings) -> float:
    """Return the layers that run for a drafted token over the model's own; 0 where a lookup drafts. [fraction]."""
    head = draft_of(architecture, settings)
    if head is None:
        return 0.0
    passes = settings.num_speculative_tokens if head.drafts_at_once else head.num_modules
    return len(head.body.layers) / passes / len(architecture.layers)


@derived(4)
def draft_head(architecture: Architecture, method: SpeculativeMethod) -> DraftHead | None:
    """Return the layers of one way to draft.

    Raises:
        InvalidQuestionError: the checkpoint has no prediction modules, or published EAGLE heads
            of such a model do not follow from its config.
    """
    match method:
        case "ngram":
            return None
        case "mtp":
            if architecture.mtp is None:
                lacks = f"{architecture.name} has no prediction modules that the engine can load"
                raise _refusal(lacks, _without_modules(architecture))
            return architecture.mtp
        case "eagle" | "eagle3":
            return _eagle(architecture, method)


def _without_modules(architecture: Architecture) -> str:
    """Return who may draft for a model whose checkpoint does not."""
    try:
        _attention(architecture)
    except InvalidQuestionError:
        return "ngram"
    return "eagle, eagle3 or ngram"


def _eagle(architecture: Architecture, method: SpeculativeMethod) -> DraftHead:
    """Return one Llama layer with the heads of the model's attention and a dense network.

    The network is as wide as the model's dense one, or as the experts a token passes through.
    EAGLE projects the embedding and the last hidden state to the model's width. EAGLE-3 projects
    the states of three layers, its attention reads them beside the embedding, and it has an output
    head of its own for the commonest tokens.
    """
    start, is_third = len(architecture.layers), method == "eagle3"
    layer = DecoderLayer(
        index=start,
        mixers=(_attention(architecture),),
        mlp=DenseMlp(intermediate_size=_dense_width(architecture)),
    )
    # EAGLE's layer takes its input as it is.
    return DraftHead(
        body=_one_layer(architecture, layer, norms=2 if is_third else 1),
        layer_modules=(f"model.layers.{start}.",),
        joined_states=EAGLE3_STATES if is_third else 2,
        num_norms=2 if is_third else 0,
        widened_inputs=architecture.hidden_size if is_third else 0,
        head_vocab_size=min(EAGLE3_VOCABULARY, architecture.vocab_size) if is_third else 0,
        is_vocab_mapped=is_third,
        is_quantized=False,
    )


def _one_layer(architecture: Architecture, layer: DecoderLayer, *, norms: int) -> Architecture:
    """Return a model of this layer alone, in the widths of another."""
    return Architecture(
        name=architecture.name,
        dtype=architecture.dtype,
        hidden_size=architecture.hidden_size,
        vocab_size=architecture.vocab_size,
        max_position_embeddings=architecture.max_position_embeddings,
        default_max_model_len=architecture.default_max_model_len,
        layers=(layer,),
        norms_per_layer=norms,
    )


def _attention(architecture: Architecture) -> Mixer:
    """Return the attention of the draft: like the model's, rather one without a window."""
    drafting = [(mixer.spread.is_local, mixer.draft_attention) for mixer in architecture.mixers]
    choices = [(is_local, attention) for is_local, attention in drafting if attention is not None]
    if not choices:
        raise _refusal(
            f"EAGLE heads of {architecture.name} do not follow from its config",
            "mtp or ngram" if architecture.mtp else "ngram",
        )
    return next((attention for is_local, attention in choices if not is_local), choices[0][1])


def _dense_width(architecture: Architecture) -> int:
    """Return the columns of the model's dense network, or of all experts that a token passes through."""
    parts = [part for part in architecture.feed_forwards if not part.is_empty]
    dense = [part.active_columns for part in parts if not part.has_experts]
    return max(dense or [part.active_columns for part in parts], default=4 * architecture.hidden_size)


def _refusal(detail: str, accepted: str) -> InvalidQuestionError:
    return InvalidQuestionError(detail, field="speculative_method", accepted=accepted)


def reserved_tokens(settings: EngineSettings) -> int:
    """Return the slots a request holds beyond its own tokens: those to verify, and those the drafter writes. [tokens].

    slots = k                     n-grams, which only are verified
            k + k lookahead       drafts by layers with a cache

    Source: vLLM 0.33 `v1/core/sched/scheduler.py` (`_request_remaining_blocks`).
    """
    drafted = settings.num_speculative_tokens
    return drafted if settings.speculative_method in (None, "ngram") else 2 * drafted


def retained_tokens(head: DraftHead | None, num_speculative_tokens: int) -> int:
    """Return what sliding windows keep longer, so that several modules can read it again. [tokens].

    k - 1 with more than one module in use; 0 otherwise

    Source: vLLM 0.33 `v1/core/kv_cache_planning.py` (`extra_retained_tokens`).
    """
    if head is None or min(head.num_modules, num_speculative_tokens) < 2:
        return 0
    return num_speculative_tokens - 1
