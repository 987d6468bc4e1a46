"""What went wrong, in one sentence."""
import errno
import shlex
import shutil
import sys

NO_PLACE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC,
            errno.EFBIG, getattr(errno, 'EDQUOT', None)}


def refuse(words):
    sys.exit(f'd2lps: {words}')


def of_system(error):
    if error.errno in NO_PLACE:
        refuse(f'this folder cannot be written: {error}')
    refuse(f'the installation failed: {error}')


def of_command(command):
    """One that has said itself what it did not like."""
    free = shutil.disk_usage('.').free >> 20
    refuse(f'this failed, with {free} MB free on the disk:\n'
           f'    {shlex.join(map(str, command))}')


def if_full(needed):
    """Stop before a download for which there is no room; in MB."""
    free = shutil.disk_usage('.').free // 1_000_000
    if free < needed:
        refuse(f'this takes {needed} MB of disk, and {free} MB are free here. '
               'Nothing was downloaded yet.')


def of_pip(said):
    if any('CERTIFICATE_VERIFY_FAILED' in line for line in said):
        refuse('pip does not trust what answers in place of its package '
               'index. If that is a proxy of your institution, set '
               'PIP_CERT to the file of its certificate.')
    if any('Retrying (' in line for line in said):
        refuse('pip cannot reach its package index. Is this machine '
               'connected to the Internet? Behind a proxy, set '
               'https_proxy.')
    errors = [k for k, line in enumerate(said) if line.startswith('ERROR')]
    first = errors[0] if errors else -20
    refuse('pip failed:\n' + ''.join(said[first:][:20]).rstrip())
