"""A worker of vLLM without a model: every request gets the ids of one sentence, and a step takes a fixed time.

`vllm serve FOLDER --worker-cls vllm_stub_worker.Worker`, with this folder in PYTHONPATH. Scheduler, engine process and API process are
vLLM's own, so what is left of a request's cost is that of the front end.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from vllm.v1.kv_cache_interface import FullAttentionSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.worker.worker_base import CompilationTimes, WorkerBase

STEP_SECONDS = 0.01
"""Time of a step, however many requests are in it."""
TEXT = " The weir holds the river back just long enough that it flows over clean."


class Worker(WorkerBase):
    """Worker whose model costs nothing."""

    def init_device(self) -> None:
        """Set the device that no tensor is put on."""
        from transformers import AutoTokenizer

        self.device = torch.device("cpu")
        tokenizer = AutoTokenizer.from_pretrained(self.model_config.tokenizer)
        self._ids = tokenizer.encode(TEXT, add_special_tokens=False)
        self._lengths: dict[str, int] = {}
        self._places: dict[str, int] = {}

    def load_model(self, *, load_dummy_weights: bool = False) -> None:
        """Load nothing."""

    def get_supported_tasks(self) -> tuple[str, ...]:
        """Return what vLLM's front end serves."""
        return ("generate",)

    def get_kv_cache_spec(self) -> dict[str, Any]:
        """Return a cache of one small layer, so that long prompts fit."""
        spec = FullAttentionSpec(
            block_size=self.cache_config.block_size, num_kv_heads=1, head_size=8, dtype=torch.float16
        )
        return {"layer": spec}

    def get_supported_kv_cache_layouts(self) -> list[str]:
        """Return any layout, as there is no cache."""
        return ["NHD"]

    def determine_available_memory(self) -> int:
        """Return memory for a million ids and more."""
        return 1 << 26

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        """Allocate nothing."""

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """Compile nothing."""
        return CompilationTimes(0.0, 0.0)

    def execute_model(self, scheduler_output: Any) -> ModelRunnerOutput:
        """Return one id for each request whose prompt is complete in this step."""
        for new in scheduler_output.scheduled_new_reqs:
            self._lengths[new.req_id] = len(new.prompt_token_ids)
            self._places[new.req_id] = 0
        computed = {new.req_id: new.num_computed_tokens for new in scheduler_output.scheduled_new_reqs}
        cached = scheduler_output.scheduled_cached_reqs
        computed |= dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        for request in scheduler_output.finished_req_ids:
            self._lengths.pop(request, None)
            self._places.pop(request, None)
        ids: list[list[int]] = []
        for request, count in scheduler_output.num_scheduled_tokens.items():
            if computed[request] + count < self._lengths[request]:
                ids.append([])
                continue
            ids.append([self._ids[self._places[request] % len(self._ids)]])
            self._places[request] += 1
        if ids:
            time.sleep(STEP_SECONDS)
        requests = list(scheduler_output.num_scheduled_tokens)
        return ModelRunnerOutput(requests, {request: place for place, request in enumerate(requests)}, ids)
