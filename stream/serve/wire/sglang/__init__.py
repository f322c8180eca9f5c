"""Requests in ids as SGLang's renderer writes them for SGLang's `POST /generate`."""
