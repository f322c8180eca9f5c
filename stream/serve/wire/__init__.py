"""Wire formats, sans-I/O, to and from our own events: a room for each protocol, and what they share.

shared/      errors, checks of bodies, contents and messages, logprobs, ids
openai/      Chat Completions and Completions
responses/   Responses
anthropic/   Messages
vllm/        render and derender, and the requests in ids of the engine between them
sglang/      requests in ids, as SGLang's renderer writes them
"""
