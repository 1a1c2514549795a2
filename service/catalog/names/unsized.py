"""Words of names that say a format which is none of those sized here, or nearly one of them: none is read as 16 bits.

Sources:
    Formats: vLLM 0.33 `model_executor/layers/quantization/`, transformers 5.23 `utils/quantization_config.py`
        (AQLM, EETQ, HIGGS, HQQ, QuIP, SINQ, SpQR, VPTQ), and repositories of pytorch (`-float8dq`), amd (`-PTPC`),
        ISTA-DASLab (`-MR-GPTQ-mxfp`), mlx-community (`-DWQ`, `-OptiQ`), OsaurusAI (`-JANG_4M`), Youssofal (`-MTPLX`),
        aws-neuron, litert-community, Intel, huawei-csl (SINQ), nvidia (EoRA), mit-han-lab (QServe, QoQ).
    Ordinary words: the 16,849 repositories that llmfit 1.1.17 lists, of which none is refused for a near one.
"""

import re
from collections.abc import Iterator
from typing import Final

from rapidfuzz.distance import OSA

from service.catalog.names.formats import BESIDE, FOREIGN, METHODS, STATED
from service.catalog.names.words import pieces_of

# By words, and by what stands between separators.
OTHER_FORMATS: Final = (
    r"[0-9](?:\.[0-9]+)?bits?|bits?|bpw|[0-9.]+bpw|.*quant.*|.*fp[46].*|.*int[1-8].*|fp[0-9].*|[a-z]+fp8|float8.*|"
    r"mx[0-9]+|mxfp.*|w[0-9]+[aw][0-9]*.*|w[0-9]+|q[0-9].*|oq|oq[0-9].*|tq[0-9].*|jang.*|crack|escha|parol?|tq|"
    r"nvfp.*|mixfp.*|qtensor|mtplx.*|[a-z]*hqq|aqlm|quip.*|vptq|hqt|eetq|bitnet|ternary|1\.58.*|swq|wmix|kronq|quark|"
    r"torchao|ao|gptneox|mobile|compressed|packed|s?mix(?:ed)?|marlin|squeeze.*|spqr|efficientqat|bitblas|npu.*|"
    r"neuronx?|trt.*|tensorrt.*|qqq|uqff|w[0-9]g[0-9]+|g(?:s|roup)?(?:32|64|128)|qnn|rkllm|rk[0-9]+|ov|ggjt|"
    r"[a-z]*awq.*|[a-z]*gptq.*|[a-z]*bnb.*|fbgemm.*|nonuniform|ptpc|dq|sinq|a?eora|qoq|qserve|quik|rtn|higgs|flute|"
    r"optiq|dwq|ctranslate.*|ct2|imatrix|litert.*|smoothquant|omniquant|edgerazor|gsq|hlwq|zipnn|df11|dfloat.*|"
    r"exl[0-9].*|executorch|openvino.*|onnx.*|vnni|ane|a?svd|prisma.*|hsaq.*|[0-9.]+gb|autoround.*|bitsandbytes.*|nunchaku|svdq.*"
)
# Of names whose shape is known and that say no format: what none of them says of 16 bits.
FEW_BITS: Final = re.compile(
    r"(?:[1-8](?:\.[0-9]+)?-?bits?|[0-9.]+bpw|mxfp[0-9]*|nvfp.*|[a-z]+fp8|float8.*|w[0-9]+[aw][0-9]+.*|[io]?q[2-8]|jang|"
    r"mtplx|marlin|ptpc|fbgemm|nonuniform|int[1-8].*|hqq|aqlm|vptq|sinq|optiq|dwq|edgerazor|gsq|turboquant|hlwq)"
)
# What the formats that are sized are called, and may be meant by a slip of the finger.
MEANT: Final = (
    "awq", "gptq", "fp8", "int4", "int8", "nvfp4", "mxfp4", "mxfp8", "w4a16", "w8a8", "w8a16", "autoround",
    "bitsandbytes", "4bit", "8bit",
)  # fmt: skip
# Ordinary words that are a letter from one of those; figures behind such letters count something else.
ORDINARY: Final = frozenset(
    {"aw", "awe", "aws", "qwq", "gwq", "gpt", "gpts", "gptj", "gptx", "bit", "bits", "int", "into"}
)
COUNTED: Final = re.compile(r"(?:[a-eg-ik-z]|ep|exp|it|pt|lr|tp|dp|pp|cp|sp|np|rp|gpt)[0-9]+")
FORMATS: Final = frozenset({*STATED, *METHODS, *FOREIGN})
LEAST: Final = 3  # letters of a word that may be a misspelt one
LONG: Final = 8  # from which two slips are as likely as one
_OTHER: Final = re.compile(OTHER_FORMATS)


def misspelt_format(name: str) -> tuple[str, str] | None:
    """Return a word that is nearly a format's, and that format.

    >>> misspelt_format("Llama-3.3-70B-Instruct-NVPF4"), misspelt_format("Qwen3-32B-AWG")
    (('nvpf4', 'nvfp4'), ('awg', 'awq'))
    >>> misspelt_format("Qwen3-32B-AWQ"), misspelt_format("Qwen3-8B-GPT-4o-distill-ep8")
    (None, None)
    """
    for piece in _pieces(name):
        meant = _meant(piece)
        if meant is not None:
            return piece, meant
    return None


def other_format(name: str) -> str | None:
    """Return a word by which a name says a format that is not sized.

    >>> other_format("Qwen3-32B-float8dq"), other_format("Qwen3-32B-WMXFP4FP8-KVFP8"), other_format("Qwen3-32B-FP8")
    ('float8dq', 'wmxfp4fp8', None)
    """
    return next((piece for piece in _pieces(name) if _OTHER.fullmatch(piece)), None)


def unsized(name: str) -> str | None:
    """Return what a name says of a format that is not sized, or misspells; None where it says nothing of that kind."""
    other = other_format(name)
    if other is not None:
        return f"{other!r}, a format that is not sized by its name"
    slip = misspelt_format(name)
    return f"{slip[0]!r}, which is no format here and nearly {slip[1]}" if slip else None


def few_bits(name: str) -> str | None:
    """Return a word of a name that no repository in 16 bits says, nor one in a format that is sized.

    >>> few_bits("TinyLlama-1.1B-Chat-v1.0-marlin"), few_bits("Llama-3-Quant-Trader")
    ('marlin', None)
    """
    pieces = (piece for piece in pieces_of(name) if piece not in STATED)
    return next((piece for piece in pieces if FEW_BITS.fullmatch(piece)), None)


def _pieces(name: str) -> Iterator[str]:
    """Yield what stands between separators and is no word of a format that is sized, nor of a recipe of one."""
    pieces = pieces_of(name)
    known = FORMATS if FORMATS.isdisjoint(pieces) else FORMATS | BESIDE
    yield from (piece for piece in pieces if piece not in known)


def _meant(piece: str) -> str | None:
    """Return the format of which a word is a slip away."""
    if len(piece) < LEAST or piece in ORDINARY or COUNTED.fullmatch(piece):
        return None
    near = {meant: OSA.distance(piece, meant) for meant in MEANT}
    best = min(near, key=near.__getitem__)
    return best if 0 < near[best] <= 1 + (len(piece) >= LONG) else None
