"""tokenweir: chat messages in, prompt ids out to any engine; token ids back, clean text out, token by token."""
