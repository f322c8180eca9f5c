"""Messages to prompt text."""
