"""Start, watch and end processes: here, in the slow network, over SSH.

From the reader to the program that runs, each file calls the next:
`restarts` puts new ones in the place of those that have ended; `supervisor`
says who is started, and in what order; `group` watches them and ends them all
when one dies; `process` is our end of the line to each;
`keeper`, one in each place, forks them; `member` is what is forked, and goes
on as a `server` or as a worker that waits for `cells`.

Beside them: `places` (and `d2lps_hosts`) say where processes run,
`namespaces` makes the slow network, `calls` is the reader's end of `%%px`.
"""
