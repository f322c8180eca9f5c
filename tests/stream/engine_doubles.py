"""Doubles of inference servers, written by their documented protocols: real sockets, a model of arithmetic.

The model continues from the last id of the prompt: 5 is followed by 6, 7 and so on, up to `END`, the end token. What it
answers is therefore known, and an answer never ends by itself before `END`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

END = 126
CONTEXT = 4000


def answer(prompt_ids: list[int], most: int) -> tuple[list[int], str]:
    """Return the ids with which the model continues a prompt, at most `most`, and the finish reason: "stop" or "length"."""
    ids = list(range(prompt_ids[-1] + 1, END + 1))[:most]
    return ids, "stop" if ids and ids[-1] == END else "length"


class Server:
    """Double of an inference server.

    Attributes:
        url: Its address.
        requests: The path and the body of every POST.
        fail: What happens in place of answers, in this order: a status to answer with, or "close" or "hang" before the
            answer; "break", "quiet", "error" or "garbage" after its second event. When there are no more, all goes well.
        cancelled: Set when a client has closed the connection before the end of its answer.
        endless: Whether the model repeats its first id for ever.

    """

    def __init__(self, routes: dict[str, Any]) -> None:
        self.routes = routes
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.fail: list[int | str] = []
        self.cancelled = threading.Event()
        self.leaving = threading.Event()
        self.endless = False

    def events(self, route: Any, body: dict[str, Any]) -> Iterator[bytes]:
        """Yield the events of the answer of a route to a request's body."""
        yield from route(body, self.endless)


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def log_message(self, *args: object) -> None: ...

    def do_GET(self) -> None:
        double = self.server.double
        if self.path not in double.routes:
            return self._send(404, b'{"detail":"Not Found"}')
        return self._send(200, json.dumps(double.routes[self.path]).encode())

    def do_POST(self) -> None:
        double = self.server.double
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        double.requests.append((self.path, body))
        double.headers.append(dict(self.headers))
        if self.path not in double.routes:
            return self._send(404, b'{"detail":"Not Found"}')
        failure = double.fail.pop(0) if double.fail else None
        if isinstance(failure, int):
            return self._send(failure, b'{"error":{"message":"no and again no","code":1}}')
        if failure == "close":
            return None
        if failure == "hang":
            double.leaving.wait(30)
            return None
        return self._stream(double, body, failure)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, double: Server, body: dict[str, Any], failure: str | None) -> None:
        route = double.routes[self.path]
        if not body["stream"]:
            return self._send(200, json.dumps(route(body, double.endless)).encode())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for number, event in enumerate(route(body, double.endless)):
                if number == 2 and failure == "break":
                    self.connection.close()
                    return None
                if number == 2 and failure == "quiet":
                    break
                if number == 2 and failure == "error":
                    event = {"error": {"message": "out of luck", "type": "InternalServerError"}}
                if number == 2 and failure == "garbage":
                    event = {"choices": 5, "tokens": 5, "meta_info": 5}
                self._chunk(b": ping\n\ndata: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n")
            self._chunk(b"data: [DONE]\n\n" if failure != "quiet" else b"\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            double.cancelled.set()
        return None

    def _chunk(self, data: bytes) -> None:
        half = len(data) // 2  # events do not come in whole pieces
        for piece in (data[:half], data[half:]):
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.flush()


@contextmanager
def running(routes: dict[str, Any], port: int = 0) -> Iterator[Server]:
    """Run a server double with these routes in a thread; yield it."""
    double = Server(routes)
    with ThreadingHTTPServer(("127.0.0.1", port), _Handler) as server:
        server.daemon_threads = True
        server.double = double  # type: ignore[attr-defined]
        double.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield double
        finally:
            double.leaving.set()
            server.shutdown()
            thread.join()


def _ids(prompt: list[int], most: int | None, endless: bool) -> tuple[Iterator[int], str]:
    if endless:
        return iter(lambda: prompt[-1] + 1, None), "length"
    ids, reason = answer(prompt, CONTEXT if most is None else most)
    return iter(ids), reason


def _tops(token_id: int) -> list[tuple[int, float]]:
    """Return the three likeliest (id, logprob) where the model generates an id."""
    return [(token_id, -token_id / 8), (token_id - 1, -token_id / 4), (token_id - 2, -token_id / 2)]


MODELS = {"data": [{"id": "double", "root": "/models/double", "max_model_len": CONTEXT}]}


def vllm_generate(body: dict[str, Any], endless: bool) -> Any:
    """Answer as vLLM's `/inference/v1/generate`: one choice a chunk, with the new ids only."""
    sampling = body["sampling_params"]
    choices = []
    for index in range(sampling.get("n", 1)):
        ids, reason = _ids(body["token_ids"], sampling.get("max_tokens"), endless)
        choices.append((index, ids, reason))
    if not body["stream"]:
        return {
            "request_id": "generate-tokens-1",
            "choices": [
                {"index": index, "token_ids": list(ids), "finish_reason": reason, "logprobs": None}
                for index, ids, reason in choices
            ],
            "usage": _vllm_usage(body["token_ids"]),
        }
    return _vllm_chunks(choices, sampling, body)


def _vllm_usage(prompt: list[int]) -> dict[str, Any]:
    """Return vLLM's usage with cached tokens, for a prefix cache that has all of a prompt but its last id."""
    return {"prompt_tokens": len(prompt), "prompt_tokens_details": {"cached_tokens": len(prompt) - 1}}


def _with_last(ids: Iterator[int]) -> Iterator[tuple[int, bool]]:
    """Yield ids, each with whether it is the last one."""
    before: int | None = None
    for token_id in ids:
        if before is not None:
            yield before, False
        before = token_id
    if before is not None:
        yield before, True


def _vllm_chunks(
    choices: list[tuple[int, Iterator[int], str]], sampling: dict[str, Any], body: dict[str, Any]
) -> Iterator[Any]:
    for index, ids, reason in choices:
        for token_id, is_last in _with_last(ids):
            logprobs = None
            if "logprobs" in sampling:
                own = {"token_id": token_id, "logprob": -token_id / 8, "rank": 1}
                tops = [{"token_id": other, "logprob": logprob, "rank": 1} for other, logprob in _tops(token_id)]
                logprobs = {"content": [own | {"top_logprobs": [own, *tops[: sampling["logprobs"]]]}]}
            end = reason if is_last else None
            choice = {"index": index, "token_ids": [token_id], "finish_reason": end, "logprobs": logprobs}
            yield {"request_id": "generate-tokens-1", "usage": None, "choices": [choice]}
    if body.get("stream_options", {}).get("include_usage"):
        yield {"choices": [], "usage": _vllm_usage(body["token_ids"])}


def vllm_completions(body: dict[str, Any], endless: bool) -> Iterator[Any]:
    """Answer as vLLM's `/v1/completions` with `return_token_ids`."""
    assert body["return_token_ids"] is True
    ids, reason = _ids(body["prompt"], body.get("max_tokens", 16), endless)
    for token_id, is_last in _with_last(ids):
        logprobs = {"token_logprobs": [-token_id / 8], "tokens": ["?"]} if "logprobs" in body else None
        if body.get("logprobs"):
            assert body["return_tokens_as_token_ids"] is True
            logprobs |= {"top_logprobs": [{f"token_id:{other}": logprob for other, logprob in _tops(token_id)}]}
        end = reason if is_last else None
        choice = {"index": 0, "text": "?", "token_ids": [token_id], "finish_reason": end, "logprobs": logprobs}
        yield {"id": "cmpl-1", "choices": [choice]}
    if body.get("stream_options", {}).get("include_usage"):
        yield {"choices": [], "usage": _vllm_usage(body["prompt"])}


def sglang(cumulative: bool) -> Any:
    """Return a handler for SGLang's `/generate`.

    If `cumulative`, its chunks have all ids so far, otherwise the new ones, as under `--incremental-streaming-output`.
    """

    def generate(body: dict[str, Any], endless: bool) -> Iterator[Any]:
        sampling = body["sampling_params"]
        most = sampling.get("max_new_tokens", 128)
        ids, reason = _ids(body["input_ids"], most, endless)
        given: list[int] = []
        logprobs: list[list[Any]] = []
        tops: list[list[list[Any]]] = []
        ended = None
        for token_id in ids:
            given.append(token_id)
            logprobs.append([-token_id / 8, token_id, None])
            number = body.get("top_logprobs_num", 0)
            tops.append([[logprob, other, None] for other, logprob in _tops(token_id)[:number]])
            if not endless and (token_id == END or len(given) == most):
                ended = {"type": reason} | ({"matched": END} if reason == "stop" else {"length": most})
            meta = {"id": "1", "finish_reason": ended, "prompt_tokens": 1, "completion_tokens": len(given)}
            meta["cached_tokens"] = len(body["input_ids"]) - 1
            if body.get("return_logprob"):
                meta["output_token_logprobs"] = list(logprobs) if cumulative else logprobs[-1:]
                if number:
                    meta["output_top_logprobs"] = list(tops) if cumulative else tops[-1:]
            yield {"output_ids": list(given) if cumulative else [token_id], "meta_info": meta}

    return generate


def llama(body: dict[str, Any], endless: bool) -> Iterator[Any]:
    """Answer as llama.cpp's `/completion`, for a vocabulary in which the id of an ASCII character is its code."""
    ids, reason = _ids(body["prompt"], body.get("n_predict"), endless)
    count, timings = 0, {"cache_n": len(body["prompt"]) - 1, "prompt_n": 1}
    for token_id in ids:
        count += 1
        event = {"index": 0, "content": "" if token_id == END else chr(token_id), "tokens": [token_id], "stop": False}
        if "n_probs" in body:
            tops = [{"id": other, "logprob": logprob} for other, logprob in _tops(token_id)[: body["n_probs"]]]
            event["completion_probabilities"] = [{"id": token_id, "logprob": -token_id / 8, "top_logprobs": tops}]
        if body.get("timings_per_token"):
            event["timings"] = timings
        yield event | {"tokens_predicted": count, "tokens_evaluated": 1}
    end = {"stop": True, "stop_type": "eos" if reason == "stop" else "limit", "timings": timings}
    yield {"index": 0, "content": "", "tokens": [], "tokens_predicted": count} | end


PROPS = {
    "model_path": "/models/double.gguf",
    "chat_template": "{{ messages }}",
    "default_generation_settings": {"n_ctx": 99},
}
DOUBLES = {
    "vllm generate": {"/inference/v1/generate": vllm_generate, "/v1/models": MODELS},
    "vllm generate, no stream": {"/inference/v1/generate": vllm_generate, "/v1/models": MODELS},
    "vllm completions": {"/v1/completions": vllm_completions, "/v1/models": MODELS},
    "sglang cumulative": {"/generate": sglang(True), "/v1/models": MODELS},
    "sglang incremental": {"/generate": sglang(False), "/v1/models": MODELS},
    "llama-server": {"/completion": llama, "/props": PROPS},
}
