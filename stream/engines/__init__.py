"""Engines: their protocol, and the built-in ones.

Adapters for external engines are separate modules, imported by name.
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
