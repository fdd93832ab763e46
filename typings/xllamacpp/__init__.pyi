from collections.abc import Callable
from typing import Any

class _Model:
    path: str

class _Threads:
    n_threads: int

class CommonParams:
    model: _Model
    cpuparams: _Threads
    cpuparams_batch: _Threads
    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_parallel: int
    ctx_shift: bool
    embedding: bool
    cache_ram_mib: int
    endpoint_metrics: bool
    fit_params: bool
    ui: bool
    warmup: bool
    verbosity: int
    hostnames: list[str]
    api_keys: list[str]

class Server:
    def __init__(self, params: CommonParams) -> None: ...
    @property
    def listening_address(self) -> str: ...
    def handle_completions(
        self, asked: dict[str, Any], callback: Callable[[dict[str, Any]], bool] | None = None
    ) -> dict[str, Any] | None: ...
    def handle_metrics(self) -> object: ...
    def handle_embeddings(self, asked: dict[str, Any]) -> dict[str, Any]: ...
