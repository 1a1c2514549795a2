"""Where a model was copied from: the address of a hub's page, a cache's folder or a path."""

import re
from typing import Final

from service.catalog.names.words import plain

HOSTED = (
    "huggingface.co hf.co hf-mirror.com modelscope.cn modelscope.ai ollama.com registry.ollama.ai build.nvidia.com "
    "openrouter.ai wisemodel.cn gitee.com"
)
# Publishers, not families.
NAMED_APART: Final = frozenset(
    {"meta", "mistral", "qwen", "openai", "google", "nvidia", "zai", "moonshotai", "moonshot"}
)
HOSTS: Final = frozenset(HOSTED.split())
# What Bedrock calls a model: region, publisher, name, version and revision.
BEDROCK: Final = re.compile(r"(?:(?:us|eu|apac|jp|au|ca|global)\.)?([a-z][a-z0-9]*)\.([a-z].*?)(?:-v?([0-9]))?:([0-9])")
# The same without a revision, of publishers that are known: a point elsewhere is a version's.
RENTED = (
    "meta|mistral|mistralai|zai|moonshotai|moonshot|qwen|cohere|amazon|stability|writer|deepseek|nvidia|openai|google"
)
RENTED_BARE: Final = re.compile(rf"(?:(?:us|eu|apac|jp|au|ca|global)\.)?({RENTED})\.([a-z][^/:]*?)(?:-v1)?")
# LiteLLM's providers, with the way and the region that a model is asked by.
PROVIDER: Final = re.compile(
    r"(?:bedrock(?:_converse)?/(?:(?:converse|converse_like|invoke|[a-z]{2}(?:-[a-z]+)+-[0-9])/)*|databricks/(?=databricks-))"
)
# How long a model is to think, which services write behind its name.
EFFORT: Final = re.compile(
    r"((?:.*/)?(?:gpt-oss-(?:safeguard-)?[0-9]+b|kimi-k[0-9.]+|glm-[0-9.]+))-(?:x?high|low|medium|minimal|max)"
)
PREFIX: Final = re.compile(
    r"(?:[a-z0-9+]+://|git@|(?:workers-ai/)?@[ch]f/|hf:|huggingface:|modelscope:|ms:|ollama:|hosted_vllm/|docker\.io/)"
)
POINT_IN_A_FOLDER: Final = "___"  # as ModelScope's cache writes it
# What services write before the names of others' models; Arctic is Snowflake's own, and Dolly Databricks's.
SELLER: Final = re.compile(
    r"(?:databricks-(?!dolly)|snowflake-(?=llama|claude|mistral)|z-?ai-(?:org-)?(?=glm)|duo-chat-|alicloud-|"
    r"(?:umans|cline)-(?=glm|kimi)|arcee-(?=trinity)|(?:coding-)?xiaomi-(?=mimo)|coding-(?=glm|minimax|kimi))"
)
SHOWN = "tree blob resolve raw summary files discussions commits main versions labels"
AFTER_THE_NAME: Final = frozenset(SHOWN.split())
BEFORE_THE_NAME: Final = frozenset({"models", "library", "model", "api"})
CACHED: Final = re.compile(r"models--(.+?)--(.+)")
HASH: Final = re.compile(r"[0-9a-f]{20,64}|snapshots|refs|blobs")
TAG: Final = re.compile(r"(?::|(?<=[0-9]b)-)(?:latest|free|cloud|exacto|batch|extended|thinking|nitro|floor|online)$")
FORMAT_BEHIND: Final = re.compile(r"/(fp|bf)-?(8|16)$")  # of hosts that write it apart
NEWEST: Final = re.compile(r"~(?=[a-z0-9-]+/)(.+?)(?:-latest)?$")  # OpenRouter's newest of a line
REVISION: Final = re.compile(r"@[a-z0-9][a-z0-9._/-]*$")
PATH: Final = re.compile(r"(?:/|\./|\.\./|~|[a-z]:[\\/])")


def whole_keys(name: str) -> tuple[str, ...]:
    """Return under what a name may stand in a catalog whole: without a provider before it, or a seller of an edition.

    `-thinking` is an edition's name where a catalog has it; else services write it behind a model that may think.

    >>> whole_keys("bedrock/cohere.command-r-v1:0"), whole_keys("a/b-thinking")
    (('cohere.command-r-v1:0',), ('a/b-thinking', 'b-thinking'))
    """
    key = PROVIDER.sub("", plain(name), count=1)
    edition = key.rpartition("/")[2]
    return (key, edition) if edition.endswith("-thinking") and edition != key else (key,)


def repository(text: str) -> tuple[str, str]:
    """Return the publisher, empty where none is named, and the repository that a text leads to.

    >>> repository("https://huggingface.co/Qwen/Qwen3-32B-AWQ/tree/main")
    ('qwen', 'qwen3-32b-awq')
    >>> repository("~/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/b968826d9c46dd6066d109eabc6255188de91218")
    ('qwen', 'qwen3-8b')
    >>> repository("us.meta.llama3-3-70b-instruct-v1:0")
    ('meta', 'llama3-3-70b-instruct')
    >>> repository("bedrock/us-east-1/meta.llama3-70b-instruct-v1:0"), repository("openai/gpt-oss-120b-high")
    (('meta', 'llama3-70b-instruct'), ('openai', 'gpt-oss-120b'))
    >>> repository("workers-ai/@cf/meta/llama-2-7b-chat-fp16"), repository("databricks-gpt-oss-20b")
    (('meta', 'llama-2-7b-chat-fp16'), ('', 'gpt-oss-20b'))
    """
    address = PROVIDER.sub("", plain(text).replace(POINT_IN_A_FOLDER, "."), count=1)
    address = EFFORT.sub(r"\1", address)
    rented = BEDROCK.fullmatch(address)
    if rented:
        edition = f"-v0.{rented[4]}" if rented[3] == "0" else ""
        name = rented[2] if rented[1] in NAMED_APART else f"{rented[1]}-{rented[2]}"
        return rented[1], f"{name}{edition}"
    bare = RENTED_BARE.fullmatch(address)
    if bare:
        return bare[1], bare[2] if bare[1] in NAMED_APART or bare[1] == "mistralai" else f"{bare[1]}-{bare[2]}"
    address = FORMAT_BEHIND.sub(r"-\1\2", NEWEST.sub(r"\1", address))
    is_path = PATH.match(address) is not None
    address = re.split(r"[?#]", address)[0].replace("\\", "/")
    address = PREFIX.sub("", address, count=1) if PREFIX.match(address) else address
    address = SELLER.sub("", address, count=1) if SELLER.match(address) else address
    address = TAG.sub("", REVISION.sub("", address)).rstrip("/").removesuffix(".git")
    parts = [part for part in re.split(r"/|(?<=\.co):", address) if part and not HASH.fullmatch(part)]
    for part in parts:
        cached = CACHED.fullmatch(part)
        if cached:
            return cached[1], cached[2]
    is_page = bool(parts) and parts[0].removeprefix("www.") in HOSTS
    if is_page:
        parts = [part for place, part in enumerate(parts[1:]) if place or part not in BEFORE_THE_NAME]
        return _first(parts)
    parts = _until(parts)
    if is_path or len(parts) < 2:
        return "", parts[-1] if parts else ""
    return parts[-2], parts[-1]


def _first(parts: list[str]) -> tuple[str, str]:
    """Return what stands first on a page's address: publisher and name, or a name alone."""
    parts = _until(parts)
    return (parts[0], parts[1]) if len(parts) > 1 else ("", parts[0] if parts else "")


def _until(parts: list[str]) -> list[str]:
    """Return the parts before the one that says what is shown of a model."""
    end = next((place for place, part in enumerate(parts) if place and part in AFTER_THE_NAME), len(parts))
    return parts[:end]
