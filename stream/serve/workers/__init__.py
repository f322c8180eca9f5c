"""Several workers of one server: peers.py carries requests between them."""
