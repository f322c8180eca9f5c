"""Reports for operators: metrics.py numbers, tracing.py a span an answer, access_log.py a line a request, failures.py
what a client is told of an error and what only the log has.
"""
