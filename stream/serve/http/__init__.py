"""HTTP interfaces: api.py for generation, endpoints.py for the others, exchange.py for bodies and streams."""
