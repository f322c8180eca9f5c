"""The interfaces over HTTP: api.py those that generate, endpoints.py the others, exchange.py bodies and streams."""
