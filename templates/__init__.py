"""Messages to prompt text, by HuggingFace's conventions for Jinja chat templates.

The way of the data:

    files.py           finds a template beside a tokenizer; chat_template.py renders it, compiled_template.py within bounds
    environment.py     the sandbox and what templates may call; limits.py bounds what they may cost
    messages.py        checks and prepares messages, as habits.py finds that the template wants them; continuation.py goes on
                       with the last one
    guard.py           tells user text from the template's own; prompt.py is the result
    styles/            how models mark thinking and write tool calls, as data: a template shows them
"""
