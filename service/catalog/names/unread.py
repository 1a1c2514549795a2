"""Models that people name and whose class no rule here reads.

Sources:
    Classes: the registries of vLLM 0.33 (`model_executor/models/registry.py`) and transformers 5.23 (`models/auto`),
    and the configs' `model_type` as llmfit 1.1.17 lists it by repository.
    LongCat Flash Lite looks up n-grams (`LongcatFlashNgramForCausalLM`), Omni hears and speaks, as do Step Audio and
    MiMo Audio (github.com/meituan-longcat, /stepfun-ai and /XiaomiMiMo); Cogito v2 671B is tuned from DeepSeek V3.
    Bases: the cards of allenai/SERA-32B and skt/A.X-4.0 on huggingface.co, AceMath's paper (arXiv:2412.15084), and for
    Hunyuan MT the size and class of its siblings.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

NO_ENTRY: Final = "of a class that is read here, and without an entry: import its config, or add one"
NO_CONTEXT: Final = "tuned from a model here, and its context is not at hand: name that model, or paste its config"
NO_RULE: Final = "of a class that no rule here reads, so it is refused rather than approximated"

# By what a name begins with, the class or `model_type` behind it.
WITHOUT_A_RULE = r"""
    internlm xcomposer|
    molmo[eo](?! 2)|molmoact|cogvlm|cogagent|idefics(?! 3)|janus|mplug|[a-z]*xcomposer|internomni|sensenova|
    sail vl|yi vl|deepseek vl (?!2)|unlimited ocr|got ocr|nvidia nemotron parse|nemotron parse|
    llava onevision (?:1\.5|2)|video llava|videollama|moondream|kosmos|blip(?! 2 opt)|instructblip|emu 3|
    kanana 1\.5 v|youtu|
    hyperclovax seed vision|voxtral .*(?:realtime|tts)|megrez|bagel|chameleon|
    llama [0-9.]+ [0-9]+b omni|
    phi 3 small|openelm|gpt neo|chatglm 6b|codegeex(?! 4)|decilm|smallthinker|openmoe|bluelm|yuan|skywork 13b|
    lingowhale|minicpm (?:moe|sala|llama)|minicpm v 2$|minimax vl|zaya|ouro|bitnet|falcon rw|
    diffusiongemma|deepseek v4 flash vision|mage vl|dots 3 note|north micro vision|agnes [0-9]|
    k ?2 horizon|a[. ]?x k ?2|apertus v1\.5|hunyuan 3d|
    a x 4\.0 vl|zamba 7b|hymba|stripedhyena|codegen|xgen mm|ovis 1|mono internvl|jet nemotron|phi 4 mini flash|motif|
    ming (?:lite|flash|omni)|ring (?:flash|mini) linear|intern s ?1 pro|intern s ?2 mobius|ilama|higgs|chatts|cheers|
    step 5|step audio|mimo audio|longcat flash (?:lite|omni)|
    nanbeige 4\.2|aya vision|c 4 ai aya vision|longcat 2|reka flash 3\.1|reka edge|
    jina vlm|flint|domyn|muse spark|
    spark x|xing|mamba 3|hrm|recurrent|polylm|galactica|glm 10b|cosmos 3|nextstep|glm image
"""


def _begins(words: str) -> re.Pattern[str]:
    joined = "|".join(part.strip() for part in " ".join(words.split()).replace("| ", "|").split("|"))
    return re.compile(rf"(?:{joined})(?![a-z]).*")


# Classes that `engine/families` reads: their config is not at hand.
WITHOUT_AN_ENTRY = r"""
    rnj|isaac|granite (?:vision )?4(?:\.[0-9])? .*vision|granite vision 4|apriel 1\.5|
    longchat|cogito (?:v ?2\.1|2\.1|671b|v ?2 preview deepseek)|zamba 2|falcon h ?1 tiny|skywork r ?1 ?v|
    pixtral large|ultravox|voxtral|granite speech|molmo(?! 2)|idefics 3|blip 2 opt|llava interleave|
    hyperclovax seed omni|hy 4|beam|mimo v ?2 omni|hunyuan mt|hy mt|a x 4\.0|tiny aya|qwen 4
"""

# What a name does not tell of its base: the words before it, and those of the base.
BASES: Final[Mapping[re.Pattern[str], str]] = {
    re.compile(r"sera(?: ga)? ([0-9]+b)(?: ga)?"): r"qwen 3 \1",
    re.compile(r"acemath ([0-9]+b)(?: instruct)?"): r"qwen 2.5 math \1 instruct",
    re.compile(r"(?:hunyuan|hy) mt(?: [0-9.]+)?(?: chimera)? ([0-9.]+b)"): r"hunyuan \1 instruct",
    re.compile(r"a x 4\.0"): "qwen 2.5 72b instruct",
}

UNREAD: Final = _begins(WITHOUT_A_RULE)
UNENTERED: Final = _begins(WITHOUT_AN_ENTRY)


def unread(words: Sequence[str]) -> str | None:
    """Return why a model that is known by its name is not sized: no rule reads its class, or it has no entry.

    >>> unread(("molmo", "7b", "d", "0924")) == NO_ENTRY, unread(("molmoe", "1b", "0924")) == NO_RULE
    (True, True)
    >>> unread(("storyteller", "8b")) is None
    True
    """
    said = " ".join(words)
    if UNREAD.match(said):
        return NO_RULE
    return NO_ENTRY if UNENTERED.match(said) else NO_CONTEXT if base_of(words) else None


def base_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the model that one of these words was tuned from; none where its name is not known here.

    >>> base_of(("sera", "32b", "ga")), base_of(("llama", "3.1", "8b"))
    (('qwen', '3', '32b'), ())
    """
    said = " ".join(words)
    told = ((pattern.fullmatch(said), base) for pattern, base in BASES.items())
    return next((tuple(match.expand(base).split()) for match, base in told if match), ())
