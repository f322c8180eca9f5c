"""vLLM's schemas of render and derender, sans-I/O.

`render.py` has the fields of requests to render, `generate.py` the engine's request and answer in ids, `logprobs.py` the
probabilities of those ids as those of tokens, and `derender.py` the requests that bring an answer in ids, whole or in chunks.
"""
