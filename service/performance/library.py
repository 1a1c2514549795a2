"""The library of measured kernels, as it is asked: its own settings read once, configs, tables of an engine."""

import json
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
import yaml

from service.engine.arithmetic import MILLISECONDS_PER_S
from service.engine.inputs import All2AllBackend
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.performance.overlapped import Overlapping
from service.performance.tables import StepTables, as_rows

# Many tokens go by the kernels of high throughput, those that decode by the kernels of low latency.
KERNELS_OF: Final[Mapping[All2AllBackend, Mapping[str, str]]] = {
    "deepep": {"context": "deepep_ht", "generation": "deepep_ll"}
}
# GPUs of a server, and of those that a rack joins, by the library's names of them.
SERVER_GPUS: Final = 8
TRAY_GPUS: Final = 4
IN_TRAYS: Final = frozenset({"gb200", "gb300"})
SHORT_PROMPT_TOKENS: Final = 128.0  # whose attention is negligible
MOST_SETTINGS: Final = 64  # files of the library's own, a few kB each
MOST_READ: Final = 256  # configs, some 20 kB each


@dataclass(frozen=True, slots=True)
class Config:
    """A model's config as the library reads it, and what it is known by."""

    text: str
    digest: str

    @classmethod
    def of(cls, text: str) -> "Config":
        """Return a config by its text."""
        return cls(text, sha256(text.encode()).hexdigest())


class Library:
    """What is asked of the library. It keeps what it reads for the whole process, and so does this."""

    def __init__(
        self,
        compile_engine: Callable[..., Any],
        read: Callable[[str], object],
        forget: Callable[[], None],
        exchange: "Exchange",
    ) -> None:
        """Start with no config read.

        Args:
            compile_engine: gives the engine of a layout.
            read: reads a config, and keeps it by its path.
            forget: forgets every config.
            exchange: what the configs of layouts say of exchanges between experts.
        """
        self._compile, self._exchange = compile_engine, exchange
        self._read, self._forget = read, forget
        self._paths: dict[str, str] = {}  # where a config lay when the library read it, by its digest
        self._lock = Lock()

    def compiled(
        self, all2all_backend: All2AllBackend | None, path: str, system: str, backend: str, **stated: Any
    ) -> Any:
        """Return the engine of a layout whose ranks exchange tokens by a backend; None: the engine's own way.

        Args:
            all2all_backend: the backend.
            path: of the model's config.
            system: the library's name of a GPU.
            backend: and of an engine.
            stated: layout and modes.
        """
        with self._exchange.by(all2all_backend, system):
            return self._compile(path, system, backend, **stated)

    def path_of(self, config: Config) -> str:
        """Return the path by which the library knows a config: it reads each once, so that no file need stay."""
        with self._lock:
            if config.digest not in self._paths:
                if len(self._paths) >= MOST_READ:
                    self._paths.clear()
                    self._forget()
                with tempfile.TemporaryDirectory() as folder:
                    Path(folder, "config.json").write_text(config.text, encoding="utf-8")
                    self._read(folder)
                self._paths[config.digest] = folder
            return self._paths[config.digest]


class Exchange:
    """What the library's configs of layouts say of exchanges between experts: its own entry has no argument for it."""

    def __init__(self, build: Callable[..., Any]) -> None:
        """Start with the engine's own way.

        Args:
            build: makes a config.
        """
        self._build = build
        self._said: Mapping[str, Any] = {}

    @contextmanager
    def by(self, backend: All2AllBackend | None, system: str) -> Iterator[None]:
        """Say so of every config that is made meanwhile, by whoever asks for one table at a time."""
        if backend is not None:
            gpus = TRAY_GPUS if system in IN_TRAYS else SERVER_GPUS
            said = {"moe_comm_backend": KERNELS_OF[backend], "num_gpus_per_node": gpus, "enable_eplb": True}
            self._said = {**said, "system": system}
        try:
            yield
        finally:
            self._said = {}

    def __call__(self, **stated: Any) -> Any:
        """Return the config of a layout."""
        config = self._build(**stated)
        for name, value in self._said.items():
            setattr(config, name, value)
        return config


@lru_cache(maxsize=1)
def library() -> Library:
    """Return the library, loaded the first time: 0.2 s that start-up need not wait for."""
    # It reads ten files of its own settings anew for each table, which takes longer than the table.
    vars(yaml).update(SafeLoader=_keeping_loader())
    # It prints which tables it falls back to, at every load.
    logging.getLogger("aiconfigurator_core").setLevel(logging.CRITICAL)
    from aiconfigurator_core.sdk import engine, perf_database, utils  # noqa: PLC0415

    # For each table it also walks through its folders three times, to tell which version of a system is asked for.
    for module, name in ((engine, "_literal_backend_version"), (perf_database, "get_database")):
        vars(module)[name] = lru_cache(MOST_SETTINGS)(vars(module)[name])

    def forget() -> None:
        for name in ("get_model_config_from_model_path", "_load_model_config_from_model_path"):
            vars(utils)[name].cache_clear()

    exchange = Exchange(vars(engine)["build_model_config"])
    vars(engine)["build_model_config"] = exchange
    return Library(engine.EngineHandle.compile, utils.get_model_config_from_model_path, forget, exchange)


def _keeping_loader() -> type[yaml.CSafeLoader]:
    """Return a loader that reads a text once, and copies what it says each time it is asked to read it again."""
    said = lru_cache(MOST_SETTINGS)(lambda text: yaml.load(text, yaml.CSafeLoader))

    class Keeping(yaml.CSafeLoader):
        def __init__(self, stream: Any) -> None:
            self._text = stream.read() if hasattr(stream, "read") else stream
            super().__init__(self._text)

        def get_single_data(self) -> Any:
            return _copied(said(self._text))

    return Keeping


def _copied(said: Any) -> Any:
    """Return mappings and lists of one's own, down to what nobody can change."""
    if isinstance(said, dict):
        return {name: _copied(value) for name, value in said.items()}
    return [_copied(value) for value in said] if isinstance(said, list) else said


@lru_cache(maxsize=1)
def probe() -> Config:
    """Return the config of a small model that the library knows."""
    file = resources.files("service.performance").joinpath("data", "probe.yaml")
    return Config.of(json.dumps(yaml.safe_load(file.read_text(encoding="utf-8"))))


def tables_of(handle: Any, with_heads: Callable[[], StepTables | None], *, overlaps: bool = False) -> StepTables:
    """Return tables of an engine of the library.

    Beyond what was measured the library fits curves, for each value anew, which takes a hundred times as long as a
    value between those measured. Nothing but attention depends on the context, so that it is the same on all layouts
    whose ranks have as many heads, the rest once for all contexts:

        decode(requests, context) = decode(requests, shortest) + attention(requests, context)
        attention(requests, context) = heads(requests, context) - heads(requests, shortest)

    Args:
        handle: the engine.
        with_heads: gives tables of a layout whose ranks have the same heads; None where there is no other.
        overlaps: steps are two batches that overlap; what attention adds is the same. [yes or no]
    """
    timed = Overlapping(handle) if overlaps else handle

    def decode_s(requests: float, context: float) -> float:
        return float(timed.decode_step_latency(int(requests), int(context), 2)) / MILLISECONDS_PER_S

    def prefill_s(tokens: float, prompt_tokens: float, by: Any = handle) -> float:
        prompts = max(int(tokens / prompt_tokens), 1)
        return float(by.predict_prefill_latency(prompts, int(min(prompt_tokens, tokens)))) / MILLISECONDS_PER_S

    def attention_s(attended: float) -> float:
        length = 2 * attended  # causal: a token attends to half of its prompt on average
        return max(prefill_s(length, length) - prefill_s(length, SHORT_PROMPT_TOKENS), 0.0) / length

    shortest = [decode_s(requests, CONTEXTS[0]) for requests in REQUESTS]
    tokens = tuple(prefill_s(tokens, SHORT_PROMPT_TOKENS, timed) for tokens in TOKENS)
    heads = with_heads()
    if heads is not None:
        attention = as_rows(np.array(shortest)[:, None] + np.array(heads.decode) - np.array(heads.decode)[:, :1])
        return StepTables(decode=attention, tokens=tokens, attention=heads.attention)
    return StepTables(
        decode=tuple(tuple(decode_s(requests, context) for context in CONTEXTS) for requests in REQUESTS),
        tokens=tokens,
        attention=tuple(attention_s(attended) for attended in ATTENDED),
    )
