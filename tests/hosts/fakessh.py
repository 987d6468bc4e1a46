"""Stands for ssh: a command runs on this machine, as if it were another.

    python fakessh.py OPTIONS -- NAME COMMAND

A file `NAME.gone` in the folder LAB says that the machine cannot be reached.
"""
import os
import sys

name, command = sys.argv[sys.argv.index('--') + 1:]
if os.path.exists(f'{os.environ["LAB"]}/{name}.gone'):
    print(f'ssh: connect to host {name} port 22: Connection refused',
          file=sys.stderr)
    sys.exit(255)
address = '127.0.0.3' if name == 'two' else '127.0.0.2'
os.environ |= {'MACHINE': name,
               'SSH_CONNECTION': f'127.0.0.1 1 {address} 22'}
os.execvp('sh', ['sh', '-c', command])
