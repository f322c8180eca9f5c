"""Chats: messages to deltas, and one stream of deltas for several readers.

`chat.py` resolves a request (`plan.py`), renders, encodes (`plan_encoding.py`), generates (`engine_call.py`) and decodes;
`answer_record.py` keeps the ids of answers, and `media.py` takes images and sound out of messages. `thinking_end.py` finds the ids
that end thinking, for prompts that close it and for `thinking_budget.py`, which bounds it. `stages.py` and `prompt_stage.py` are the same steps as async generators, each of which
owns its source. `multiplex.py` mixes several answers, `cancellable.py` ends an engine's generator at once, and `task_scope.py` owns
background tasks. `broadcast.py` hands deltas to readers through a bounded buffer, `fan_out.py` gives one stream to several of them,
and `replay_buffer.py` keeps events for readers that come back.
"""
