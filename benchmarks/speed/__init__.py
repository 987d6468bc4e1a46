"""What `make compare` times, in the form of asv.

A benchmark uses what old commits have, too: the names that `d2lps` itself
offers. What a commit cannot run raises NotImplementedError in `setup`, and
asv reports n/a.

`rounds` times `repeat` is the number of samples of a commit. From seven on,
asv compares the samples themselves; with fewer, only wide intervals.
"""
