"""Messages to prompt text, by HuggingFace's conventions for Jinja chat templates.

The way of the data:

    files.py           finds a template beside a tokenizer; chat_template.py renders it
    messages.py        checks and prepares messages, in the form that capabilities.py finds the template to take;
                       continuation.py continues the last one
    history_form.py    finds the form to which a client's history is tidied, by the conversations of probes.py
    native/            the engine: Jinja2 with an origin for every byte of the output, in C++;
                       `_native.pyi` documents it, and its README lists the folders
    guard.py           finds the control tokens that are not the template's, from the origins
    prompt.py          the result; masks.py tells messages and what a model learns from the same origins
    styles/            how models mark thinking and write tool calls, as data: a template shows them
"""
