"""What runs in a scheduler or server: MXNet's own, and updates checked.

`member` runs this file without importing the rest of d2lps.
"""
import base64
import ctypes
import importlib.util
import os
import pickle
import sys
import threading
import traceback
from pathlib import Path


def serve(channel):
    """Be a scheduler or server, until all workers have freed their stores.

    MXNet's library is enough for that; its Python part, which takes longer
    to load, is needed only once there is an optimizer to run.
    """
    handle, store = ctypes.c_void_p(), []

    def load(message):
        # Without a role, importing mxnet does not start another server.
        role = os.environ.pop('DMLC_ROLE', 'server')
        import mxnet
        os.environ['DMLC_ROLE'] = role
        return mxnet, pickle.loads(base64.b64decode(message))

    def try_loading(message):
        error = None
        try:
            load(message['update'])
        except BaseException as reason:
            error = f'{type(reason).__name__}: {reason}'
        channel.tell('checked', number=message['number'], error=error)

    def command(_, body, __):
        try:
            mxnet, update = load(body)
            if not store:  # one for good: Python would free the handle, too
                store.append(mxnet.kv.KVStore(handle))
            store[0]._set_updater(updater_for(update, channel))
        except BaseException:
            channel.tell('fault', text=traceback.format_exc())

    def check(status):
        if status:
            sys.exit(library.MXGetLastError().decode(errors='replace'))

    channel.start(check=lambda message: threading.Thread(
        target=try_loading, args=[message], daemon=True).start())
    folder = Path(importlib.util.find_spec('mxnet').origin).parent
    library = ctypes.CDLL(str(next(folder.glob('libmxnet.*'))))
    library.MXGetLastError.restype = ctypes.c_char_p
    command = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p,
                               ctypes.c_void_p)(command)
    check(library.MXKVStoreCreate(b'dist', ctypes.byref(handle)))
    check(library.MXKVStoreRunServer(handle, command, None))
    os._exit(0)  # the store is gone; nothing may try to free it again


def updater_for(update, channel):
    """What a server calls for a push: an optimizer's update or a function."""
    import mxnet as mx
    if isinstance(update, mx.optimizer.Optimizer):
        run = mx.optimizer.get_updater(update)
    else:
        def run(key, gradient, weight):
            update(key, gradient.as_np_ndarray(), weight.as_np_ndarray())

    def reporting(key, gradient, weight):
        try:  # MXNet would only print it here, where nobody looks
            run(key, gradient, weight)
            weight.wait_to_read()
        except BaseException:
            channel.tell('fault', text=traceback.format_exc())
    return reporting
