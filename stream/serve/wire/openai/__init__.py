"""OpenAI's Chat Completions (`chat.py`, with `chat_messages.py` and `leftovers.py`, comes in, `chat_answers.py` goes out) and
Completions (`completions.py`), sans-I/O.
"""
