"""Answers in ids for tests of render and derender: what they mean, and how they come back."""

import json

from serving import CALL, TOK

from tokenweir.templates.chat_template import ChatTemplate

HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "weather", "description": "Look outside."}}
TEMPLATE = ChatTemplate(
    "{% for tool in tools or [] %}{{ tool.function.name }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
ANSWERS = {
    "thinking": ("<think>Let me see.</think>Hello wörld 🙂!<|im_end|>", {}),
    "a call": (f"<think>Hm.</think>Look.{CALL}<|im_end|>", {"tools": [TOOL]}),
    "tools that nobody asked for": (f"Look.{CALL}<|im_end|>", {}),
    "a stop string": ("<think>no END here</think>one END two<|im_end|>", {"stop": ["END"]}),
    "a stop that is kept": ("one END two", {"stop": "END", "include_stop_str_in_output": True}),
    "special tokens": ("one<|im_end|>", {"skip_special_tokens": False}),
}


def generated(*answers, reason="stop", **more):
    choices = [
        {"index": index, "token_ids": TOK.encode(text), "finish_reason": reason} for index, text in enumerate(answers)
    ]
    return {"request_id": "generate-tokens-1", "choices": choices} | more


async def post(client, path, body, status=200):
    reply = await client.post(path, json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


CHAT = "/v1/chat/completions/derender"
TEXT = "/v1/completions/derender"


def cut(ids, sizes):
    """Split ids into pieces; their sizes cycle through `sizes`."""
    pieces, place, turn = [], 0, 0
    while place < len(ids):
        size = sizes[turn % len(sizes)]
        pieces.append(ids[place : place + size])
        place, turn = place + size, turn + 1
    return pieces


async def derender(client, path, pieces, *, last="stop", index=0, logprobs=None, first=None, **more):
    """Post the pieces of an answer to a derender path one by one; return the chunks and the last state."""
    state, chunks = None, []
    for number, piece in enumerate(pieces):
        choice = {"index": index, "token_ids": piece, "finish_reason": None}
        if number == len(pieces) - 1:
            choice["finish_reason"] = last
        if logprobs is not None:
            choice["logprobs"] = {"content": [logprobs(token_id) for token_id in piece]}
        body = {"stream": True, "generate_chunk": {"request_id": "r", "choices": [choice]}, "stream_state": state}
        reply = await client.post(path, json=body | more | (first or {} if number == 0 else {}))
        assert reply.status_code == 200, reply.text
        state = reply.json()["stream_state"]
        chunks.append(reply.json()["chunk"])
    return chunks, state


def joined(chunks):
    """Return the message that chat chunks add up to, and its (finish reason, stop reason)."""
    message = {"content": "", "reasoning": "", "calls": []}
    ends = []
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            message["reasoning"] += delta.get("reasoning") or ""
            for call in delta.get("tool_calls") or ():
                if call["index"] == len(message["calls"]):
                    assert call["id"] and call["type"] == "function"
                    message["calls"].append([call["function"]["name"], ""])
                message["calls"][call["index"]][1] += call["function"].get("arguments") or ""
            if choice["finish_reason"]:
                ends.append((choice["finish_reason"], choice["stop_reason"]))
    assert len(ends) == 1, json.dumps(chunks)
    return message, ends[0]
