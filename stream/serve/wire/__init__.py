"""What goes over the wire, to and from our own events, without any I/O: Responses, Chat Completions, Completions."""
