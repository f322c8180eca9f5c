"""The servers: vLLM alone, tokenweir in front of it, and vLLM with the three plug-ins."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

START_SECONDS = 400
"""Most seconds of a start, most of which are imports and the loading of the model."""
COMMON = (
    *("--max-model-len", "4096", "--enforce-eager", "--dtype", "float32", "--host", "127.0.0.1"),
    *("--enable-prompt-tokens-details", "--enable-auto-tool-choice", "--served-model-name", "small"),
)
# Without the default, vLLM's parser takes whole answers that do not think for thinking.
QUIET = ("--default-chat-template-kwargs", '{"enable_thinking": false}')
ALONE = ("--tool-call-parser", "hermes", "--reasoning-parser", "qwen3", "--enable-scale-out", *QUIET)
INSIDE = ("--tool-call-parser", "tokenweir_hermes", "--reasoning-parser", "tokenweir_think")
PLUGINS = "tokenweir,tokenweir_parsers,tokenweir_server"
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ENABLE_RESPONSES_API_STORE": "1",
    "HF_HUB_OFFLINE": "1",
    "TORCH_COMPILE_DISABLE": "1",  # it compiles for a minute where logprobs are first asked for
}


def free_port() -> int:
    """Return a TCP port of the loopback address that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def process(command: list[str], environment: dict[str, str], log: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the context ends; its output is in `log`. It has answered `/health` when the context begins."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            end = time.monotonic() + START_SECONDS
            while True:
                try:
                    if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                        break
                except httpx.HTTPError:
                    pass
                if process.poll() is not None or time.monotonic() > end:
                    tail = log.read_text(errors="replace")[-3000:]
                    raise SystemExit(f"{command[0]} has not started; the end of {log}:\n{tail}")
                time.sleep(0.5)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def vllm(environment: Path, folder: Path, *, inside: bool) -> Iterator[str]:
    """Run vLLM, alone or with the plug-ins inside; yield its address.

    Args:
        environment: The virtual environment that has vLLM.
        folder: Where the logs are written.
        inside: Whether the plug-ins are named.

    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(environment / "bin" / "vllm"), "serve", str(environment / "model"), "--port", str(port), *COMMON]
    command += INSIDE if inside else ALONE
    log = folder / ("inside.log" if inside else "vllm.log")
    with process(command, ENVIRONMENT | {"VLLM_PLUGINS": PLUGINS if inside else ""}, log, url):
        yield url


@contextmanager
def in_front(url: str, folder: Path) -> Iterator[str]:
    """Run tokenweir's server in front of a vLLM at `url`; yield its address."""
    port = free_port()
    command = [sys.executable, "-P", "-m", "tokenweir", "serve", "--engine", f"vllm:{url}", "--thinks-first"]
    command += ["--model", "small", "--port", str(port)]
    own = f"http://127.0.0.1:{port}"
    with process(command, {}, folder / "front.log", own):
        yield own
