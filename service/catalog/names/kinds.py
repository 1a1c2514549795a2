"""Models that people name and nothing here sizes: what they are, by the words of their names.

Only what generates text is sized: its cache grows with every token. A word is asked for only where a name means no
model of the catalog.

Sources:
    Kinds and their words: vLLM 0.33.0, model_executor/models/registry.py (embedding, cross encoder, speech, draft and
        previously supported models); huggingface.co's tasks, as llmfit 1.1.17 lists them by repository.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from service.catalog.names.closed import closed
from service.catalog.names.unread import NO_ENTRY, NO_RULE


@dataclass(frozen=True, slots=True)
class Kind:
    """What is told by any of the words, or by words that stand beside each other."""

    words: re.Pattern[str]
    what: str


SMALL: Final = r"(?!.*\b(?:[3-9]|[0-9]{2,})(?:\.[0-9]+)?b\b)"  # no encoder of these has as many as three billion
ONLY_TEXT: Final = "only models that generate text are sized here"


def _kind(words: str, what: str) -> Kind:
    return Kind(re.compile(rf"(?:.* )?(?:{words})(?: .*)?"), what)


KINDS: Final = (
    _kind(r"eagle 2\.5 [0-9]+b|audio flamingo 3.*|kimi audio", NO_ENTRY),
    _kind(r"eagle 2 [0-9]+b|mantis|tarsier.*|midashenglm|audio flamingo.*", NO_RULE),
    _kind(
        r"eagle ?[0-9]?|peagle|dflash|dflare|dspark|medusa|speculator|accelerator|nextn|draft|drafter|pard|domino|"
        r"gemma 4.* assistant",
        "a draft for speculative decoding: name the model it drafts for, and state the draft beside it",
    ),
    _kind(r"(?:q|do)?loras?|adapters?|peft", "an adapter: name the model it adapts, and state the adapters beside it"),
    _kind(r"re ?rank(?:er|ing)?|[a-z]*reranker|cross encoder|colbert|ranker", f"a reranker; {ONLY_TEXT}"),
    _kind(
        r"[a-z]*embed(?:ding|dings)?|embeddinggemma|voyage|splade|vlm 2 vec|"
        r"gme|bge|e 5|e5|gte|gtr|minilm|mpnet|uae|nomic|instructor|jina(?! vlm)|retriever|"
        r"sentence|harrier|f2llm|e2rank|flowvec|colpali|colqwen|col qwen|stella",
        f"a model of embeddings; {ONLY_TEXT}",
    ),
    _kind(r"reward|prm|armorm|[a-z]*classifier|prompt guard|moderation|pairrm", f"a model that scores; {ONLY_TEXT}"),
    _kind(
        r"[a-z]*ttsd?|asr|whisper|wav ?2 ?vec(?: 2)?|w 2 v|cosyvoice|kokoro|voxcpm|parakeet|canary|speecht|musicgen|"
        r"forcedaligner|[a-z]*voice|bark|orpheus|moshi[a-z]*|sesame|csm|xtts|transcribe|paraformer|sensevoice|speech|seamless|music|sonic|zonos|chatterbox|"
        r"llasa|stt|personaplex|lfm 2(?:\.5)? audio|"
        r"chirp|styletts.*|voicecraft|lyria|whisperx|seamless.*|higgs audio.*|higgsaudiov.*|dia|"
        r"stable audio|sound ?effect|voice ?generator|(?<!intern )s ?[12] (?:pro|mini)",
        f"a model of speech or sound; {ONLY_TEXT}",
    ),
    _kind(
        r"flux|sdxl|stable diffusion|diffusion|wan|ltx|cogvideox?|hunyuan ?(?:video|image)|qwen image|image edit|"
        r"z image|sana|pixart|kolors|mochi|dreamshaper|kandinsky|cosmos (?:predict|transfer)|ovis image|controlnet|vae|"
        r"dall e|imagen|imagegeneration|veo|sora|ideogram|recraft|seedream|seedance|seededit|hidream.*|cogview|bria|"
        r"fibo|kling|kwaivgi|hailuo|pixverse|vidu|ray v ?2|photon|nova (?:canvas|reel)|titan image|gpt image.*|"
        r"stable (?:image|conservative|creative|fast|outpaint|style).*|sd ?3.*|ssd 1b|playground v.*|proteus|p image|"
        r"realistic vision|realvisxl|open dalle|latent consistency|mai image|lucid origin|grok (?:2 image|imagine).*|"
        r"nano banana.*|comfyui|sticker maker|minimax h ?3",
        f"a model of images or video; {ONLY_TEXT}",
    ),
    _kind(
        r"clip|siglip ?[0-9]?|dino ?v?[0-9]?|dinov|vit|internvit|sam ?[0-9]?|florence|yolo[a-z0-9]*|resnet|detr|trocr",
        f"an encoder of images; {ONLY_TEXT}",
    ),
    _kind(
        rf"{SMALL}(?:[a-z]*bert[a-z]*|electra)|xlm|xlnet|"
        r"(?:flan |m|um|by|ul|code)?t 5|t5|mt 0|m?bart|pegasus|marian|opus mt|nllb|"
        r"madlad|m 2 m 100|m2m.*|indictrans.*|ul 2|t5gemma|biogpt|aya 101",
        "an encoder, or an encoder with a decoder, which no engine here serves as a model that generates",
    ),
    _kind(r"tiny random|random|dummy|untrained", "a model of random weights, for tests"),
    _kind(
        r"aqlm|quip|vptq|hqq|eetq|spqr|bitblas|qqq|mxfp8[a-z0-9]*|w[24]a[48][a-z0-9]*|w8a8s?c[a-z0-9]*",
        "stored in a format that no rule here reads",
    ),
    _kind(
        r"text ?only",
        "the text part of a model that sees or hears: name the whole, and state language_model_only",
    ),
    _kind(r"sparse|pruned ?[0-9.]*|2of4", "a model whose weights were thinned out, which no rule here stores"),
    _kind(
        r"data ?sets?|open platypus|codealpaca|alpaca cot|skypile|slimpajama|openorca chinese|sharegpt|ultrachat|"
        r"ultrafeedback|longalpaca|magpie .*[0-9]+k|data [0-9]+k|gsm ?8k|mmlu",
        "a set of data, not a model",
    ),
    _kind(r"llada.*|dream (?:v|coder|on|org).*|sdar", "a model of text by diffusion, which keeps no cache of tokens"),
    _kind(r"rwkv[0-9.]*|retnet|recurrentgemma", "of a kind that no engine here serves"),
    _kind(
        r"llama (?:3\.2|3 2|v 3\.2|v3\.2) (?:(?:11b|90b).*|.*vision.*)|llama guard 3 11b.*|llama vision free|mllama",
        "a model that vLLM served up to 0.10.2, and of which no rule here reads what other engines hold",
    ),
    _kind(
        r"baichuan(?! m 2| m 3) ?[0-9]?.*|aquila[a-z]* ?[0-9]?.*|xverse|qwen (?:vl(?: chat)?|audio(?: chat)?)|"
        r"internlm (?:chat )?(?:7b|20b)|grok 1|persimmon|fuyu|mpt|"
        r"chameleon|arctic(?! text)|minimax (?:text 01|m 1|vl 01).*|bamba|jais (?!2(?: |$))[a-z0-9].*|plamo 2",
        "a model that newer versions of vLLM no longer serve (up to 0.22 to 0.28, by its registry)",
    ),
)


# Told before words are compared, by which the next generation would be taken for it.
NO_LONGER: Final = "a model that newer versions of vLLM no longer serve (up to 0.22 to 0.28, by its registry)"
EARLIER: Final = re.compile(r"qwen (?:1 8b|1\.8b|7b|14b|72b)(?: .*)?")


def earlier_kind(words: Sequence[str]) -> str | None:
    """Return what an earlier generation of a family is that is named as a later one, but for its number.

    >>> earlier_kind(("qwen", "7b", "chat")) is None, earlier_kind(("qwen", "2.5", "7b"))
    (False, None)
    """
    return NO_LONGER if EARLIER.fullmatch(" ".join(words)) else None


def kind_of(words: Sequence[str]) -> str | None:
    """Return what a name's words say it is, where that is nothing to size.

    >>> kind_of(("bge", "m", "3"))
    'a model of embeddings; only models that generate text are sized here'
    >>> kind_of(("llama", "3.1", "8b")) is None
    True
    """
    said = " ".join(words)
    return next((kind.what for kind in KINDS if kind.words.fullmatch(said)), None) or closed(words)
