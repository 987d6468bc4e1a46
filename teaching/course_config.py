"""What nbgrader's own commands do in a course: see `Course.make`.

Each course has a copy of this file, as its nbgrader_config.py, so nothing of
this project is imported here.
"""
import os
import pwd
import stat
import tempfile
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader.exchange.default import ExchangeCollect

DEEPEST = 20  # folders in folders that are collected


class Refused(NotebookExporter):
    """For `nbgrader autograde`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError('nbgrader does not grade this course: it would run '
                           'code of students as you. See teaching/README.md')


class Collect(ExchangeCollect):
    """`nbgrader collect`, but only of plain files that the student owns.

    nbgrader's own follows links, and reads what only the teacher can read.
    In place of what is left out there is a link to nowhere, which a grading
    names. Files are opened one by one and never by their whole path, because
    a student can change a folder while it is copied.
    """

    src_records: list[dict[str, Any]]  # nbgrader's: what is to be copied

    def _path_to_record(self, path):
        """nbgrader's, which one odd name ends for the whole class."""
        name = os.path.basename(path)
        with suppress(ValueError, OverflowError):  # it tells no time
            if name.rsplit('+', 3)[1] == self.coursedir.assignment_id:
                return super()._path_to_record(path)
        return {'username': name, 'filename': name, 'timestamp': datetime.min}

    def _sort_by_timestamp(self, records):
        """The newest first; of refused ones only where all are refused."""
        good = [one for one in records if not self._why_not(one)]
        return super()._sort_by_timestamp(good or records)

    def _why_not(self, record):
        """Why a submission is refused, or nothing."""
        if record['username'] == record['filename']:
            return 'its name tells no student, exercise and time'
        try:
            found = os.lstat(os.path.join(self.inbound_path,
                                          record['filename']))
        except OSError as error:
            return error.strerror
        if not self._is_of(record['username'], found):
            return ('another user put it there; if users have no names here, '
                    'set c.ExchangeCollect.check_owner = False')
        return '' if stat.S_ISDIR(found.st_mode) else 'it is no folder'

    def _is_of(self, student, status):
        """Does a file with this status belong to this student?"""
        if not self.check_owner:
            return student not in ('.', '..')
        try:
            return pwd.getpwuid(status.st_uid).pw_name == student
        except KeyError:
            return False

    def copy_files(self) -> None:
        good = []
        for record in self.src_records:
            if why := self._why_not(record):
                self.log.warning('%s is refused: %s', record['filename'], why)
                self._mark_refused(record, why)
            else:
                good.append(record)
        self.src_records = good
        self.coursedir.get_existing_timestamp = partial(
            _time, self.coursedir.get_existing_timestamp)
        super().copy_files()

    def _mark_refused(self, record, why):
        """Let a grading name it, if the student has nothing better there."""
        place = self.coursedir.format_path(
            self.coursedir.submitted_directory, record['username'],
            self.coursedir.assignment_id)
        if why == 'it is no folder' and not os.path.isdir(place):
            self._mark(place, f'{self.coursedir.assignment_id}.ipynb')

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        with tempfile.TemporaryDirectory(
                dir=os.path.dirname(dest), prefix='.') as folder:
            plain = os.path.join(folder, 'plain')
            os.mkdir(plain)
            left_out = self._copy_plain(src, plain)
            super().do_copy(plain, dest, log)
        for name in left_out[:100]:
            self._mark(dest, name)
            self.log.warning('%s: %s is left out: it is no plain file that '
                             'the student owns, or it is too large', src, name)

    def _copy_plain(self, src, dest):
        """Copy the student's plain files; return the names of the rest."""
        student = self._path_to_record(src)['username']
        left_out, owner = [], None
        room = 1000 * self.coursedir.max_dir_size
        try:
            for place, folders, names, here in os.fwalk(
                    src, onerror=lambda error: left_out.append(
                        os.path.basename(error.filename))):
                below = os.path.relpath(place, src)
                if owner is None:  # that of the top folder
                    owner = os.fstat(here).st_uid
                    if not self._is_of(student, os.fstat(here)):
                        return [f'{self.coursedir.assignment_id}.ipynb']
                os.makedirs(os.path.join(dest, below), exist_ok=True)
                if folders and below.count(os.sep) >= DEEPEST:
                    left_out.append(os.path.join(below, folders.pop()))
                    folders.clear()
                links = [name for name in folders if stat.S_ISLNK(os.stat(
                    name, dir_fd=here, follow_symlinks=False).st_mode)]
                for name in [*links, *names]:
                    path = os.path.normpath(os.path.join(below, name))
                    try:
                        size = self._copy_file(name, here, owner, room,
                                               os.path.join(dest, path))
                    except OSError:
                        left_out.append(path)
                    else:
                        room -= size
        except OSError:  # it was changed in the meantime
            left_out.append(f'{self.coursedir.assignment_id}.ipynb')
        return left_out

    def _copy_file(self, name, here, owner, room, to):
        """Copy a file in the open folder `here`; return its size in bytes.

        Raises OSError if it is no plain file of the owner, or has no room.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(name, flags, dir_fd=here), 'rb') as file:
            status = os.fstat(file.fileno())
            most = min(room, 1000 * self.coursedir.max_file_size)
            if (not stat.S_ISREG(status.st_mode) or status.st_uid != owner
                    or status.st_size > most):
                raise OSError
            text = file.read(most)
        with open(to, 'wb') as file:
            file.write(text)
        os.utime(to, (status.st_mtime, status.st_mtime))
        return len(text)

    def _mark(self, folder, name):
        """Put a link to nowhere in the place of a file that is left out."""
        path = os.path.join(folder, name)
        with suppress(OSError):  # something else is there
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink('left out by nbgrader collect', path)


def _time(read, folder):
    """The time in timestamp.txt, or None if what a student wrote is none."""
    try:
        return read(folder)
    except (OSError, ValueError, OverflowError, AttributeError):
        return None  # the third and the last are how nbgrader fails


c = get_config()  # type: ignore[name-defined]  # noqa: F821 (Jupyter's)
c.CourseDirectory.course_id = 'd2lps'
c.Autograde.exporter_class = Refused
c.ExchangeFactory.collect = Collect
