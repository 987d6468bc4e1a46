"""A worker asks the cluster before it calls MXNet, which might never return.

The cluster's answers come from `d2lps.cluster.agreement`.
"""


class StoreError(RuntimeError):
    """The workers do not agree, or a server could not do its work."""


class Asking:
    """A worker's questions to its cluster, over the process's `channel`."""

    def __init__(self, channel):
        self.rank, self._channel = channel.job['rank'], channel
        self._faults = []
        self.tell = channel.tell
        channel.handlers['fault'] = self._faults.append

    def ask(self, call, **message):
        """Wait until the other workers have done what `call` builds on.

        Returns the cluster's reply, a dictionary.

        Raises:
            StoreError: if they do not do it in time, or cannot; or if a
                server could not update.
        """
        self.check_faults()
        reply = self._channel.ask(call=call, **message)
        self.check_faults()
        if 'error' in reply:
            raise StoreError(reply['error'])
        return reply

    def meet(self, call, same=None, **message):
        """Wait until all workers make this call, with the same `same`."""
        return self.ask(call, same=[call, same], **message)

    def inside(self, function, *args):
        """Call a function of MXNet's; the cluster watches how long it takes.

        (After Ctrl-C, it is the end of the cell that stops the watch.)
        """
        self.tell(inside=True)
        result = function(*args)
        self.tell()
        return result

    def check_faults(self):
        """Raise StoreError if a server has reported a failed update."""
        if self._faults:
            fault = self._faults[0]
            self._faults.clear()
            raise StoreError(f"{fault['server']} could not update, so the "
                             f"value stayed as it was:\n{fault['text']}")
