"""What a model is made of: the one door to layer variants, and to the rules they answer."""

from service.engine.layers.architecture import Architecture, DecoderLayer, DraftHead, Ends, SglangCopies, SglangTower
from service.engine.layers.base import (
    FLOP_PER_MULTIPLICATION,
    DetailRule,
    Divisor,
    FeedForward,
    KernelNeed,
    LiveElements,
    Mixer,
    Part,
    Role,
    Spread,
    Work,
)
from service.engine.layers.cache import (
    DEFAULT_BLOCK_SIZE,
    USUAL_RECORDS,
    CacheSpec,
    Checkpoint,
    Records,
    Sharding,
    SpecKind,
    heads_per_rank,
)
from service.engine.layers.compressed import CompressedAttention
from service.engine.layers.convolved import ConvolvedAttention
from service.engine.layers.delta_net import GatedDeltaNet
from service.engine.layers.dense import DenseMlp
from service.engine.layers.embeddings import PerLayerEmbeddings, padded_vocabulary, vocabulary_rows
from service.engine.layers.encoder import TOWER, Encoder
from service.engine.layers.experts import MoeMlp
from service.engine.layers.grouped import GroupedQueryAttention
from service.engine.layers.heads import HeadDetails, Heads
from service.engine.layers.indexer import INDEXER_BLOCK_SIZE, SparseIndexer
from service.engine.layers.kimi_delta import KimiDeltaAttention
from service.engine.layers.latent import LatentAttention
from service.engine.layers.mamba import Mamba1, Mamba2
from service.engine.layers.ngrams import NgramGate, NgramMemory, prime_rows
from service.engine.layers.nothing import NoAttention, NoMlp
from service.engine.layers.recurrent import RecurrentMixer
from service.engine.layers.residual import AlternatingUpdates, GatedConnections, hyper_connections, stream_joiner
from service.engine.layers.rotary import RotaryTable, Rotated
from service.engine.layers.selectors import BlockSelector, KeySelector
from service.engine.layers.shapes import AttentionShape, DeltaShape, NetworkShape, Routing
from service.engine.layers.shared_blocks import SharedBlocks
from service.engine.layers.short_convolution import ShortConvolution
from service.engine.layers.sourced import SourcedAttention

# Families say `Attention` and `Mlp` of any layer's parts.
Attention = Mixer
Mlp = FeedForward

__all__ = [
    "DEFAULT_BLOCK_SIZE",
    "FLOP_PER_MULTIPLICATION",
    "INDEXER_BLOCK_SIZE",
    "TOWER",
    "USUAL_RECORDS",
    "AlternatingUpdates",
    "Architecture",
    "Attention",
    "AttentionShape",
    "BlockSelector",
    "CacheSpec",
    "Checkpoint",
    "CompressedAttention",
    "ConvolvedAttention",
    "DecoderLayer",
    "DeltaShape",
    "DenseMlp",
    "DetailRule",
    "Divisor",
    "DraftHead",
    "Encoder",
    "Ends",
    "FeedForward",
    "GatedConnections",
    "GatedDeltaNet",
    "GroupedQueryAttention",
    "HeadDetails",
    "Heads",
    "KernelNeed",
    "KeySelector",
    "KimiDeltaAttention",
    "LatentAttention",
    "LiveElements",
    "Mamba1",
    "Mamba2",
    "Mixer",
    "Mlp",
    "MoeMlp",
    "NetworkShape",
    "NgramGate",
    "NgramMemory",
    "NoAttention",
    "NoMlp",
    "Part",
    "PerLayerEmbeddings",
    "Records",
    "RecurrentMixer",
    "Role",
    "RotaryTable",
    "Rotated",
    "Routing",
    "SglangCopies",
    "SglangTower",
    "Sharding",
    "SharedBlocks",
    "ShortConvolution",
    "SourcedAttention",
    "SparseIndexer",
    "SpecKind",
    "Spread",
    "Work",
    "heads_per_rank",
    "hyper_connections",
    "padded_vocabulary",
    "prime_rows",
    "stream_joiner",
    "vocabulary_rows",
]
