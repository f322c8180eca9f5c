"""Text to ids and back. No async anywhere in this folder."""
