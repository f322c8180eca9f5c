"""Anthropic's Messages API, sans-I/O.

`requests.py` has the body of a request, `blocks.py` the content blocks of its messages, `history.py` the messages for a
chat template that they become, and `answers.py` the answer: as one message, or as events.
"""
