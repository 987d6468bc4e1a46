"""`python -m d2lps`: what a terminal shows."""
import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import d2lps
import pytest
from d2lps.__main__ import main
from d2lps.collectives.machines import command
from d2lps.collectives.machines.examples import posted
from d2lps.units import several


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
    assert out.startswith(several(d2lps.processor.cores(), 'core') + ', ')
    assert len(out.splitlines()) == 1


@pytest.mark.parametrize('args, words', [
    (['train', '--num-devices', '0'],
     '--num-devices must be a whole number from 1 to 1,024, for example '
     '--num-devices=2; it was 0'),
    (['train', '--batch-size', '20000'], '20000 is more than the 12,132'),
    (['train', '--data', 'mnist', '--root', 'nowhere'], "--root='nowhere'"),
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
    ([], 'd2lps: a command is missing; there are train, timeline, machine'),
    (['fly'], "d2lps: there is no command 'fly'. See \"d2lps --help\"."),
    (['sever'], "no command 'sever'; did you mean server? See"),
    (['-x'], "d2lps: nothing here is called '-x'. See"),
    (['train', '--epochs=3'], "d2lps train: nothing here is called "
     "'--epochs'; did you mean --num-epochs? See \"d2lps train --help\"."),
    (['cluster', '--num-wokers', '3', 'a.py'], 'did you mean --num-workers?'),
    (['server'], 'FILE'), (['machine', 'fast'], "called 'fast'"),
    (['train', '--scale', 'Xavier'], "must be a number or 'xavier'; it was")])
def test_what_is_no_argument_is_explained(terminal, args, words):
    code, out, err = terminal(*args)
    assert code == 2 and out == '' and words in err
    assert err.count('\n') == 1


COMMANDS = ['train', 'timeline', 'machine', 'server', 'cluster']


@pytest.mark.parametrize('words', [[], *([name] for name in COMMANDS)])
def test_help_fits_into_a_terminal(terminal, monkeypatch, words):
    monkeypatch.setenv('COLUMNS', '80')
    code, out, _ = terminal(*words, '--help')
    lines = out.splitlines()
    assert code == 0 and max(map(len, lines)) < 80 and len(lines) < 60
    assert lines[0].startswith(' '.join(['usage: d2lps', *words]))


def test_help_has_a_line_for_each_command(terminal):
    _, out, _ = terminal('--help')
    assert re.findall(r'^    (\w+) +\w+ \w+', out, re.M) == COMMANDS
    assert '\n\nExamples:\n  d2lps train --num-devices 2' in out


def test_a_list_of_gpus_is_printed_when_asked_for(terminal):
    code, out, _ = terminal('server', '--gpu', 'list')
    assert code == 0 and {'RTX 2080 SUPER', 'V100'} < {*re.split(
        ',\\s+', out.strip())}
    assert max(map(len, out.splitlines())) < 80


@pytest.mark.parametrize('content, words', [
    (b'', 'post is empty'), (b'hello', 'post has no table of nvidia-smi'),
    (bytes(range(256)), 'post has no table of nvidia-smi'),
    (None, 'post is a folder; name a file'),
    ('nobody', 'post: No such file or directory'),
    ('closed', 'post: Permission denied')])
@pytest.mark.parametrize('option', ['FILE', '--log'])
def test_a_file_that_cannot_be_read(terminal, tmp_path, monkeypatch, content,
                                    words, option):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / 'post'
    (tmp_path / 'table').write_text(posted('DGX-1'))
    if content is None:
        path.mkdir()
    elif content != 'nobody':
        path.write_bytes(b'' if content == 'closed' else content)
    if content == 'closed':  # root may read all files
        def refuse(name, *more):
            raise PermissionError(errno.EACCES, 'Permission denied', name)
        monkeypatch.setattr(command, 'open', refuse, raising=False)
        option = 'FILE'
    code, out, err = terminal('server', '--gpu', 'V100', *(
        ['post'] if option == 'FILE' else ['table', '--log', 'post']))
    if option == '--log':
        words = words.replace('table of nvidia-smi', 'row of nccl-tests')
    assert (code, out) == (2, '') and err.count('\n') == 1
    assert err.startswith(f'd2lps server: {words}')


def test_a_file_with_the_name_of_an_option(terminal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in 'log.txt', 'use':
        assert terminal('server', name) == (
            2, '', f'd2lps server: {name}: No such file or directory\n')
    Path('log.txt').touch()
    assert terminal('server', 'log.txt')[2].startswith(
        'd2lps server: log.txt is empty')


def test_a_command_whose_reader_leaves_says_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, '-m', 'd2lps', 'server', '--gpu', 'list'],
            stdout=writer, stderr=subprocess.PIPE, timeout=120)
    finally:
        os.close(writer)
    assert done.stderr == b''


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


def test_ctrl_c_before_a_command_runs_shows_no_traceback(
        terminal, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt
    monkeypatch.setattr('d2lps.__main__.OneLine', interrupted)
    assert terminal('machine') == (130, '', '')


def test_output_that_nobody_gets_is_an_error():
    done = subprocess.run(
        ['sh', '-c', '"$0" -m d2lps server /no/file >&-', sys.executable],
        text=True, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == (
        'd2lps: standard output is closed, so nothing can be shown\n')
