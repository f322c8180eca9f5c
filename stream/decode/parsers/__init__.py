"""Text to pieces on channels: thinking, tool calls and harmony, each a splitter; and which one a prompt shows."""
