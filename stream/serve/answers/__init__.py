"""Answers in flight, from an engine to their readers.

job.py is a request, engines.py resolves it and encodes its prompt, and generation.py runs its answer. frame_buffer.py and
pacer.py decide when output is decoded and sent.
response_task.py speaks the Responses protocol over a generation; conversations.py keeps conversations to continue,
counted by the ledger. render_cost.py estimates the cost of a prompt for the fair queue.
"""
