"""`python -m d2lps`: what a terminal shows."""
import os
import signal
import subprocess
import sys

import d2lps
import pytest
from d2lps.__main__ import main


@pytest.fixture
def terminal(capsys):
    """Run a command and return (exit code, output, error output)."""
    def run(*args):
        try:
            main([str(arg) for arg in args])
            code = 0
        except SystemExit as end:
            code = end.code
        except KeyboardInterrupt:  # it would end pytest, too
            code = 'Traceback: KeyboardInterrupt'
        if isinstance(code, str):  # Python prints it and ends with 1
            print(code, file=sys.stderr)
            code = 1
        return (code, *capsys.readouterr())
    return run


def test_train_trains(python, idx_folder):
    done = python('-m', 'd2lps', 'train', '--num-devices=2', '--num-epochs=2',
                  '--batch-size', '64', '--data', 'mnist', '--root',
                  str(idx_folder(train=200)), '--seed', '3', '--lr', '0.05')
    assert done.returncode == 0, done.stderr
    assert 'seconds per epoch on [cpu(0), cpu(1)]' in done.stdout
    assert '2/2' in done.stderr  # the progress bar
    assert 'Warning' not in done.stderr


def test_train_passes_all_arguments_on(terminal, monkeypatch):
    asked = []

    def train(**arguments):
        asked.append(arguments)
        return d2lps.TrainResult([0.5] * 7, [1] * 7, 1, [], [])
    monkeypatch.setattr(d2lps, 'train', train)
    assert terminal('train', '--num-devices', 3, '--batch-size', 5,
                    '--lr', 0.7, '--num-epochs', 7, '--data', 'mnist',
                    '--root', 'here', '--scale', 0.01, '--seed', 4)[0] == 0
    assert asked == [dict(num_devices=3, batch_size=5, lr=0.7, num_epochs=7,
                          data='mnist', root='here', scale=0.01, seed=4)]


def test_machine_prints_the_machine(terminal):
    code, out, _ = terminal('machine')
    assert code == 0
    assert out.startswith(f'{d2lps.processor.cores()} cores, ')
    assert len(out.splitlines()) == 1


@pytest.mark.parametrize('args, words', [
    (['train', '--num-devices', '0'], 'num_devices must be'),
    (['train', '--batch-size', '20000'], '20000 is more than the 12,132'),
    (['train', '--data', 'mnist', '--root', 'nowhere'], "root='nowhere'"),
    (['train', '--lr', '1e6', '--num-devices', '1'], 'the loss became'),
    (['timeline', '--num-devices', '99'], 'at most')])
def test_a_bad_argument_is_explained_in_one_line(terminal, args, words):
    code, out, err = terminal(*args)
    assert code == 1
    assert out == ''
    # What a progress bar has drawn ends before the message does.
    message = err.splitlines()[-1]
    assert message.startswith('d2lps: ') and words in message
    assert err.count('d2lps: ') == 1


@pytest.mark.parametrize('args, words', [
    ([], 'COMMAND'), (['fly'], "invalid choice: 'fly'"),
    (['train', '--scale', 'Xavier'], "must be a number or 'xavier'; it was")])
def test_what_is_no_argument_is_explained(terminal, args, words):
    code, _, err = terminal(*args)
    assert code == 2
    assert 'error: ' in err.splitlines()[-1]
    assert words in err.splitlines()[-1]


@pytest.mark.full
@pytest.mark.timeout(300)
def test_ctrl_c_ends_the_training_and_says_so(idx_folder):
    command = [sys.executable, '-m', 'd2lps', 'train', '--num-devices', '2',
               '--batch-size', '64', '--num-epochs', '100000',
               '--data', 'mnist', '--root', str(idx_folder(train=500))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        shown = b''
        while b'test_accuracy=' not in shown:
            part = os.read(process.stderr.fileno(), 1000)
            assert part, shown.decode()
            shown += part
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    finally:
        process.kill()
        process.wait(timeout=30)
    assert process.returncode == 130
    assert b'Stopped in epoch' in out and b'test accuracy' in out
    assert b'Traceback' not in shown + err
