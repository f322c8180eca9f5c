"""Token in, token out: the front end of an external engine, in vLLM's schema.

Path of a request:

    render.py       a request for text, with the fields of engine.py, becomes ids and sampling parameters:
    generate.py     what goes to and comes from `POST /inference/v1/generate`
    derender.py     an answer's ids become a completion
    stream.py       so does a stream of them, chunk by chunk; the client carries the state between two calls
    logprobs.py     probabilities of ids as those of tokens
    routes.py       the paths
"""
