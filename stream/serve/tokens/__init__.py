"""Token in, token out: the front end of an external engine, in vLLM's schema or SGLang's.

Path of a request:

    render.py       a request for text becomes ids and sampling parameters
    schemas.py      in one of two schemas
    derender.py     an answer's ids become a completion
    stream.py       so does a stream of them, chunk by chunk; the client carries the state between two calls
    routes.py       the paths

`wire/vllm/` and `wire/sglang/` have the schemas.
"""
