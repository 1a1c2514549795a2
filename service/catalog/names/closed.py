"""Names that services sell and no checkpoint bears: models behind an API alone, and routes that pick one of several.

A name is asked for only where it means no model of the catalog; what else a service sells, speech and images, is told
by its kind.

Sources:
    Prices by name: Portkey-AI/models and pydantic/genai-prices (both MIT licence, August 2026), which list what OpenAI,
    Google, AWS Bedrock, Azure, Mistral, Cohere, xAI, Z.ai, Moonshot, MiniMax, Alibaba, ByteDance, AI21, Reka, Upstage,
    Writer, Arcee, Perplexity and OpenRouter sell, and models.dev (MIT licence), which lists resellers; that they
    publish no weights: their hub pages, which hold none.
"""

import re
from collections.abc import Sequence
from typing import Final

from service.catalog.names.words import with_points

CLOSED: Final = "offered behind an API alone: its shape is not published"
ROUTE: Final = "a route of a service, which picks one of several models"

OF_OPENAI = r"""
    chatgpt|gpt 3\.5|gpt 35|gpt 4(?! ?all)[a-z0-9.]*|gpt 5[a-z0-9.]*|gpt (?:audio|realtime|image|chat latest)|
    o ?[134](?: (?:mini|pro|preview|deep|[0-9]{4}).*)?$|codex(?: mini| auto)?|computer use|(?:text |code )?(?:ada|
    babbage|curie|davinci|cushman)(?: [0-9v]+)*$|(?:omni|text) moderation
"""
OF_GOOGLE = r"gemini|bard|palm 2|learnlm|nano banana|deep research|(?:chat|text|code) ?bison|flash image"
OF_ANTHROPIC = r"claude(?! oss|.* [0-9.]+[bm]$)|(?:opus|sonnet|haiku) [0-9.]+"
OF_AMAZON = r"nova (?:[0-9] )?(?:pro|lite|micro|premier|sonic)|titan (?:text|tg)|amazon titan"
OF_XAI = r"""
    grok (?:2 (?:mini|vision|latest|[0-9]{4})|3|4|beta|build|code|vision|latest|imagine)[a-z0-9.]*|grok (?:mini|
    fast)
"""
OF_MISTRAL = r"""
    mistral medium(?: latest| [0-9]{4}| 3| 3\.1)?$|mistral (?:next|large 2402|small 2402|tiny|saba|small creative|
    vibe|document ai|code|nemotron$)|codestral (?:2|25[0-9]{2}|latest)|devstral medium|magistral medium|
    pixtral large latest$|ministral 3b 2410|mistral ocr
"""
OF_ALIBABA = r"""
    (?:qwen|qvq|qwq) ?[0-9.]*(?: (?:vl|omni|coder|math|mt|livetranslate))? (?:max|plus|turbo|long|lite|
    flash)(?! next).*|qwen coder(?: [0-9]+)*$
"""
OF_ZHIPU = r"""
    glm (?!4\.7 flash(?: |$)|4\.6 v flash|4\.6v flash)(?:4|4\.[1567]v?|5|z 1)(?: thinking)? (?:v )?(?:plus|0116|
    0520|air(?:x| 250414)|flashx?|x|long|alltools|assistant|turbo|code)(?: .*)?|glm (?:4|5) ?v (?:flash|plus|turbo)|
    glm 4\.6 ?v flashx|cogchatx?|autoglm web
"""
OF_OTHERS = r"""
    (?:llama 3(?:\.1)? )?sonar|pplx|yi (?:large|lightning|vision|medium|spark)|reka (?:core|edge(?! 26)|spark|
    flash(?! 3)).*|doubao|ernie (?:bot|4\.0|5\.0|3\.5|speed|x ?1|5\.1|4\.5 (?:turbo|8k))|
    seed (?:1\.[68]|2\.[0-9])|moonshot v 1|moonshot v1|kimi (?:thinking preview|latest)|minimax (?:m 2 her|her)|
    m 2 her|abab ?[0-9]|mercury|palmyra(?! small| base| large)|inflection|
    command(?: (?:light|nightly|text|light nightly|light text).*)?$|j ?2|jurassic|solar (?:mini|pro ?[0-9])|
    kat coder(?! v? ?2\.5)|morph|relace|caller|coder large|maestro|virtuoso large|kling|hailuo|
    aion (?:labs )?[0-9].*|jamba (?:instruct|mini 2)|mimo v ?2 pro|lfm (?:3|7|40)b|sakana|fugu|
    weaver|chat latest|hunyuan (?:2\.0|turbos?|lite|standard|large longcontext|t ?1)|step [12]|spark (?:max|ultra)
"""
ROUTES = r"""
    (?:(?:kilo )?auto(?: model| balanced| frontier)?|(?:nanogpt )?coding router.*|fusion|
    bodybuilder|pareto code|free)(?: beta)?$|model router|router|compound(?: (?:beta|mini))*$|
    (?:horizon|quasar|optimus|aurora|elephant|healer|hunter|owl) alpha
"""


# What stands in front of a name that is sold; a word elsewhere tells whose answers a fine-tune was taught by.
REGIONS = "us|us gov|eu|jp|apac|au|ca|in|global|regional|ft"
SELLERS = (
    "openai|azure|google|amazon|anthropic|x ?ai|mistral|cohere|ai ?21|writer|labs|arcee(?: ai)?|upstage|"
    "openrouter|switchpoint"
)


def _any_of(*parts: str) -> re.Pattern[str]:
    joined = "|".join("".join(line.lstrip() for line in part.splitlines()) for part in parts)
    return re.compile(rf"(?:(?:{REGIONS}) )?(?:(?:{SELLERS}) )?(?:{joined})(?: .*)?")


SOLD: Final = _any_of(
    OF_OPENAI, OF_GOOGLE, OF_ANTHROPIC, OF_AMAZON, OF_XAI, OF_MISTRAL, OF_ALIBABA, OF_ZHIPU, OF_OTHERS
)
PICKED: Final = _any_of(ROUTES)


def closed(words: Sequence[str]) -> str | None:
    """Return what a name means that a service sells and nobody can download.

    >>> closed(("claude", "sonnet", "4.5")) == CLOSED, closed(("openrouter", "auto")) == ROUTE
    (True, True)
    >>> closed(("qwen", "3", "4b", "claude", "distill")) is None
    True
    """
    said = " ".join(with_points(tuple(words)))
    return CLOSED if SOLD.fullmatch(said) else ROUTE if PICKED.fullmatch(said) else None
