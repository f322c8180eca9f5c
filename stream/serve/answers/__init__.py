"""Answers in flight, on their way from an engine to those who read them.

job.py makes a request ready, generation.py runs its answer, and batch.py with pacer.py says when what the engine gave is
decoded and told; response_task.py speaks the Responses protocol over it, and conversations.py keeps what it can go on from,
counted in ledger.py. render_cost.py estimates what a prompt takes, by which entry/fair_queue.py lets it begin.
"""
