"""Divisions of the training of a large model among GPUs.

`model`: a transformer's parameters and FLOPs. `gpus`: what a GPU can do.
`divide`: all ways to divide. `gpu_memory`: bytes on each GPU. `network`: how
long its sums take, asked from the simulator. `step`: the time of a step.
`ranking`: all divisions, the fastest first. `published`: predicted beside
published.
"""
from d2lps.planning.divide import Division, divisions
from d2lps.planning.gpu_memory import (Memory, layer_activations, memory,
                                       model_states)
from d2lps.planning.gpus import A100, B200, B300, GB200, H100, H200, Gpu
from d2lps.planning.model import (BLOOM_176B, GPT3_175B, LLAMA3_8B,
                                  LLAMA3_70B, LLAMA3_405B, Transformer)
from d2lps.planning.network import gather_time, send_time, sum_time
from d2lps.planning.published import compare_runs, read_runs
from d2lps.planning.ranking import best_divisions
from d2lps.planning.step import Step, mfu, step_time
