"""MXNet's own scheduler or server, with updates checked."""
import base64
import ctypes
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import mxnet as mx
from mxnet import npx
from mxnet.base import _LIB, check_call

from d2lps.annotations import Array, Key
from d2lps.cluster import messages
from d2lps.cluster.processes.channel import Channel

REGISTERING = 0.05  # seconds that another process may take to send a message


def serve(channel: Channel) -> NoReturn:
    """Be a scheduler or server, until all workers have freed their stores.

    The scheduler begins last.  When it answers the others' registration,
    ps-lite closes the socket that this went through in one thread, and does
    not look whether another still sends (`ZMQVan::Connect` and `SendMsg`,
    `src/zmq_van.h`): then the process may crash, or never be heard again.
    While there is no scheduler, what they send waits in their queues.
    """
    npx.reset_np()  # as in a process that MXNet makes a server
    handle, store = mx.base.KVStoreHandle(), list[Any]()
    begin = threading.Event()

    def load(packed: str | bytes) -> Any:
        return pickle.loads(base64.b64decode(packed))

    def try_loading(message: messages.Check) -> None:
        error = ''
        try:
            load(message.update)
        except BaseException as reason:
            error = f'{type(reason).__name__}: {reason}'
        channel.tell(messages.Checked(message.number, error))

    def hear(message: messages.ToMember) -> None:
        match message:
            case messages.BeginScheduler():
                begin.set()
            case messages.Check():
                threading.Thread(target=try_loading, args=[message],
                                 daemon=True).start()
            case _:
                raise ValueError('this is no message for a server')

    def command(_: int, body: bytes, __: Any) -> None:
        try:
            store[0]._set_updater(updater_for(load(body), channel))
        except BaseException:
            tell_fault(channel)

    channel.start(hear)
    if channel.job.role == 'scheduler':
        begin.wait()
        time.sleep(REGISTERING)
    else:
        channel.tell(messages.Joins())
    run_command = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p,
                                   ctypes.c_void_p)(command)
    try:
        check_call(_LIB.MXKVStoreCreate(b'dist', ctypes.byref(handle)))
        store.append(mx.kvstore.KVStore(handle))
        check_call(_LIB.MXKVStoreRunServer(handle, run_command, None))
    except mx.MXNetError as error:
        print(error, file=sys.stderr)
        os._exit(1)
    os._exit(0)  # the store is gone; nothing may try to free it again


def tell_fault(channel: Channel) -> None:
    """Tell the workers of the error that is being handled."""
    channel.tell(messages.Fault(channel.job.name, traceback.format_exc()))


def updater_for(update: Any,
                channel: Channel) -> Callable[[Key, Array, Array], None]:
    """Make the function that a server calls for a push.

    update: an optimizer, or a function of the reader.
    """
    if isinstance(update, mx.optimizer.Optimizer):
        run = mx.optimizer.get_updater(update)
    else:
        @mx.util.use_np  # the reader's function has NumPy's shapes
        def run(key, gradient, weight):
            update(key, gradient.as_np_ndarray(), weight.as_np_ndarray())

    def reporting(key, gradient, weight):
        try:  # MXNet would only print it here, where nobody looks
            run(key, gradient, weight)
            weight.wait_to_read()
        except BaseException:
            tell_fault(channel)
    return reporting
