"""A transformer in numbers: its parameters, and the FLOPs of a token.

Sources: Narayanan et al. 2021 (arXiv 2104.04473), equations 2 and 3; Llama
Team 2024 (arXiv 2407.21783), table 3, for the sizes of Llama 3.
"""
from dataclasses import dataclass

from d2lps.checks import boolean, instance_of, integer, refuse


@dataclass(frozen=True)
class Transformer:
    """A decoder of equal layers, each attention and a feed-forward network.

    layers, heads: how many. hidden: numbers in a token's vector.
    kv_heads: heads of keys and values; `heads` if left out.
    ffn: width of the feed-forward network; 4 * hidden if left out.
    vocab: how many different tokens. sequence: tokens in a sequence.
    gated: the feed-forward network has three matrices, as in Llama, and
        inputs and outputs have an embedding each. Otherwise it has two
        matrices, as in GPT; there are biases, learned positions, and one
        embedding for both.
    """
    layers: int
    hidden: int
    heads: int
    kv_heads: int = 0
    ffn: int = 0
    vocab: int = 51200
    sequence: int = 2048
    gated: bool = False

    def __post_init__(self) -> None:
        for name in 'layers', 'hidden', 'heads', 'vocab', 'sequence':
            integer(name, getattr(self, name), most=10 ** 9)
        for name in 'kv_heads', 'ffn':
            integer(name, getattr(self, name), least=0, most=10 ** 9)
        boolean('gated', self.gated)
        if self.hidden % self.heads:
            refuse('heads', self.heads, f'a divisor of hidden={self.hidden}')
        object.__setattr__(self, 'kv_heads', self.kv_heads or self.heads)
        object.__setattr__(self, 'ffn', self.ffn or 4 * self.hidden)
        if self.heads % self.kv_heads:
            refuse('kv_heads', self.kv_heads,
                   f'a divisor of heads={self.heads}')

    @property
    def matrices(self) -> int:
        """Parameters in the matrices of one layer."""
        keys = 2 * self.hidden * self.hidden * self.kv_heads // self.heads
        attention = 2 * self.hidden * self.hidden + keys
        return attention + (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def layer(self) -> int:
        """Parameters of one layer, with norms and biases."""
        return self.matrices + (2 if self.gated else 13) * self.hidden

    @property
    def embedding(self) -> int:
        """Parameters of one embedding, which is also the output's matrix."""
        return self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """The number of parameters of the model."""
        outside = (2 * self.embedding + self.hidden if self.gated else
                   self.embedding + self.sequence * self.hidden)
        return self.layers * self.layer + outside

    @property
    def attention(self) -> int:
        """FLOPs of a token's attention in one layer, forward.

        Each token is compared with all `sequence` tokens, and takes their
        mean: 2 matrix products. A causal model needs half of them.
        """
        return 4 * self.sequence * self.hidden

    @property
    def forward(self) -> int:
        """FLOPs of a token, forward: 2 for each number of a matrix."""
        return (self.layers * (2 * self.matrices + self.attention)
                + 2 * self.embedding)

    @property
    def flops(self) -> int:
        """FLOPs of a token, forward and backward (twice the forward).

        Nothing is recomputed, and attention counts in full: these are the
        *model FLOPs* of which MFU is the share (Chowdhery et al. 2022).
        """
        return 3 * self.forward


LLAMA3_8B = Transformer(32, 4096, 32, 8, 14336, 128256, 8192, True)
LLAMA3_70B = Transformer(80, 8192, 64, 8, 28672, 128256, 8192, True)
LLAMA3_405B = Transformer(126, 16384, 128, 8, 53248, 128256, 8192, True)
GPT3_175B = Transformer(96, 12288, 96)
BLOOM_176B = Transformer(70, 14336, 112, vocab=250880)
a_model = instance_of(Transformer, 'a Transformer, such as LLAMA3_70B')
