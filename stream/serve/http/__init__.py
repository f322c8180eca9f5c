"""HTTP interfaces.

A new one that generates is an endpoint, its route, and an `AnswerFormat` of its answers, as in messages.py; `error_body`
of wire/shared/errors.py gives its errors their form, by the path.

api.py has OpenAI's interfaces and `AnswerFormat`, messages.py Anthropic's, endpoints.py those without generation. exchange.py
reads bodies and sends streams; replies.py makes whole answers.
"""
