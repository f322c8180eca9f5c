"""Wire formats, sans-I/O, to and from our own events: Responses, Chat Completions, Completions, Messages."""
