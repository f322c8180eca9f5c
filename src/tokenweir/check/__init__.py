"""Properties of a chat template, for `tokenweir check`.

`model.py` has a template with its tokenizer, and the conversations; each other file looks at one property and returns findings;
`run.py` calls them in order.
"""
