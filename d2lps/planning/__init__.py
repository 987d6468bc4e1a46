"""How to divide the training of a large model among GPUs.

`model`: a transformer's parameters and FLOPs. `gpus`: what a GPU can do.
`memory`: bytes on each GPU. `network`: how long its sums take, asked from
the simulator. `divide`: divisions, the time of a step, and the best of all.
`published`: the same beside runs that were published.
"""
from d2lps.planning.divide import (Division, Step, divisions, plan,
                                   step_time)
from d2lps.planning.gpus import A100, B200, GB200, H100, Gpu
from d2lps.planning.memory import Memory, memory
from d2lps.planning.model import (BLOOM_176B, GPT3_175B, LLAMA3_8B,
                                  LLAMA3_70B, LLAMA3_405B, Transformer)
from d2lps.planning.network import gather_time, send_time, sum_time
from d2lps.planning.published import compare, read_runs
