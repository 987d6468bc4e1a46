"""What `make compare` times, in the form of asv.

A benchmark uses names that old commits have, too, or the old name where a
commit does not have the new one. What a commit cannot run raises
NotImplementedError in `setup`, and asv reports n/a.

`rounds` times `repeat` is the number of samples of a commit. From seven on,
asv compares the samples themselves; with fewer, only wide intervals.
"""
