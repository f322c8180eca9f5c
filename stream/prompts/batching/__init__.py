"""Prompts to ids without memory of earlier ones: prompt_encoding.py has the protocols of encoders, batcher.py and calibrate.py
batches of many callers, and worker_thread.py calls in threads.
"""
