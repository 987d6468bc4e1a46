"""Start, watch and end processes: here, or in the slow network.

    reader's process        this machine, or the slow network in it
    +----------------+      +--------+  line of   +----------------------+
    | Cluster        | JSON | Keeper |   JSON     | scheduler            |
    | Restarts       |----->|        |----------->| server 0, 1, ...     |
    | Supervisor     |      | forks, |  stdout,   | worker 0, 1, ...:    |
    | Group (thread) |<-----| reads, |<-----------| Channel (thread) and |
    | Agreement      | pipe | kills  |  stderr    | cells.work (main)    |
    +----------------+      +--------+            +----------------------+

The path of one call, `cluster.run(f)`:

1. `Cluster.run` packs f and its arguments into a text (`cells.pack`), and
   asks `Restarts` to start all anew if they have ended.
2. `Supervisor.calling` makes a `Call` with a number; `call_workers` sends each
   worker a message `CallPart` for each piece of the text. (All messages are
   classes of `d2lps.cluster.messages`.) All that is sent goes out in the
   thread of `Group`.
3. The message is a line in a `Pass`, in the pipe to the keeper; the `Keeper`
   writes this line to the pipe of the worker.
4. In the worker, the thread of `Channel` puts all pieces, joined, into a
   queue. The main thread
   (`cells.work`) takes it out, says `State`, and calls f
   (`cells.call_packed`).
5. What f prints goes through a pipe of its own to the keeper, and as `Printed`
   to the reader. What f wants of the store is a `StoreCall`, or where it could
   hang, a `Question`: `Agreement` in the reader's process answers when the
   other workers have come as far.
6. The result goes back packed: some `ResultPart`, then `Done`, all as lines in
   `Said`. `Group` reads them, `Supervisor` hands them to the `Call`, and
   `Cluster.run`, which waits in `Call.results`, unpacks and returns them.

The path of one death, `cluster.kill('server 0')`:

1. The kernel ends the process. Its `Keeper` notices (`waitpid`), reads what is
   left in its pipes, and tells the exit code.
2. `Group._check`, at least ten times a second, finds an exit code that nobody
   asked for, or a silence of 30 seconds, and calls `fail`.
3. All processes are ended: the pipe to the keeper closes, and it kills its
   members and removes the files. If it does not, `Group` kills it.
4. `Supervisor._failed` adds what each worker was doing, and wakes every `Call`
   that waits: all have ended.
5. `Cluster.run` asks `Restarts`: if it was a death, and `restarts=` permits
   one more, everything starts anew, and f is called again. If not, it raises
   ClusterError.

From the reader to the program that runs, each file calls the next:
`restarts` puts new ones in the place of those that have ended; `supervisor`
says who is started, and in what order; `group` watches them and ends them all
when one dies; `process` is our end of the connection to each; the `keeper`
forks them; `member` is what is forked, and goes on as an `mxnet_server` or as
a worker that waits for `cells`; `channel` is a member's end of the connection.

Beside them: `addresses` says where processes run, `namespaces` makes the slow
network, `calls` is the reader's end of `run` and `%%px`.
"""
