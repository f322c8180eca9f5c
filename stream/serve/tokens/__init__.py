"""Token in, token out: the front end of an engine that somebody else runs, in vLLM's schema.

The way of a request:

    render.py       a request for text, with the fields of engine.py, becomes ids and sampling parameters:
    generate.py     what goes to and comes from `POST /inference/v1/generate`
    derender.py     an answer's ids become a completion
    stream.py       so does a stream of them, chunk by chunk; what lies between two calls is in the hands of the client
    logprobs.py     probabilities of ids as those of tokens
    routes.py       the paths
"""
