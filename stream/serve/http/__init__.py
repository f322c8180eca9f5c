"""HTTP interfaces.

A new one that generates is an endpoint and its route, as in messages.py, and an `AnswerFormat` (wire/shared) of its answers;
`error_body` of wire/shared/errors.py gives its errors their form, by the path.

api.py has OpenAI's interfaces, messages.py Anthropic's, endpoints.py those without generation. exchange.py
reads bodies and sends streams; replies.py makes whole answers.
"""
