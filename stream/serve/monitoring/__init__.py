"""What operators are told: metrics.py numbers, tracing.py a span for each answer, access_log.py a line a request."""
