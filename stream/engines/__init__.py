"""The engines: the protocol that one has to follow, and those that are built in.

Adapters for other people's engines are modules of their own, imported by name.
"""

from tokenweir.stream.engines.ngram import NgramEngine
from tokenweir.stream.engines.ngram_table import NgramTable
from tokenweir.stream.engines.protocol import Engine
from tokenweir.stream.engines.replay import Recording, ReplayEngine
from tokenweir.stream.engines.sync import SyncEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

__all__ = [
    "Engine",
    "EngineStep",
    "NgramEngine",
    "NgramTable",
    "Recording",
    "ReplayEngine",
    "Sampling",
    "SyncEngine",
]
