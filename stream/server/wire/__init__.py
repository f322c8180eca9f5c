"""What goes over the wire: the OpenAI Responses protocol to and from tokenweir's own events, without any I/O."""
