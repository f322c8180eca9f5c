"""Answers in flight, from an engine to their readers.

job.py is a request, engines.py plans it and encodes its prompt, job_runner.py has the engine answer it, and generation.py
keeps that answer for its readers. frame_buffer.py and pacer.py decide when output is decoded and sent.
response_task.py speaks the Responses protocol over a generation; conversations.py keeps conversations to continue,
counted by the ledger. render_cost.py estimates the cost of a prompt for the fair queue.
"""
