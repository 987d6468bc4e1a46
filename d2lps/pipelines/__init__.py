"""In which order the stages of a pipeline work, and how long they wait.

`orders`: for each stage, a list of its passes. `timing`: when each pass of
such lists begins and ends, how long stages are idle, and what they keep.
"""
from d2lps.pipelines.orders import (Pass, gpipe, interleaved, one_f_one_b,
                                    zero_bubble)
from d2lps.pipelines.timing import (Timed, bubble, idle_share, most_kept,
                                    time_passes)
