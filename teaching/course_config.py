"""Settings for nbgrader's own commands in a course: see `Course.make`.

Each course has a copy of this file, as its nbgrader_config.py, so this file
imports nothing of the project.
"""
import os
import pwd
import shutil
import stat
from datetime import datetime
from functools import partial
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import ignore_patterns, parse_utc

# A link is not followed, and a pipe does not keep us waiting.
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class Refused(NotebookExporter):
    """For `nbgrader autograde`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError('nbgrader does not grade this course: it would run '
                           'code of students as you. See teaching/README.md')


class Collect(ExchangeCollect):
    """`nbgrader collect`, but of a student's own folders and plain files.

    nbgrader's own command collects a folder that another user put there. It
    follows links, so a student could hand in a file that only the teacher can
    read. Here links stay links, and `make grade` reads none.
    """

    src_records: list[dict[str, Any]]  # nbgrader's: the folders to collect

    def _path_to_record(self, path):
        """nbgrader's record of a folder; a refused one belongs to nobody.

        nbgrader takes only the newest folder of each student, so a refused
        folder must not be among them.
        """
        try:
            record = super()._path_to_record(path)
            self._check_is_of(record['username'], os.lstat(path))
        except Exception as error:  # of many types, because of odd times
            self.log.warning('%s is not collected: %s', path, error)
            return {'username': None, 'filename': os.path.basename(path),
                    'timestamp': datetime.min}
        return record

    def _check_is_of(self, student, status):
        """Raise an error if a path with this status is not the student's."""
        if not stat.S_ISDIR(status.st_mode) or student in ('', '.', '..'):
            raise OSError('it is no folder of a student')
        # A user who has no name here is a KeyError, which says so.
        if self.check_owner and pwd.getpwuid(status.st_uid).pw_name != student:
            raise OSError('another user has put it there')

    def copy_files(self) -> None:
        """Collect from each student alone: an error stops no other student.
        """
        self.coursedir.get_existing_timestamp = _time
        for record in self.src_records:
            if record['username'] is None:
                continue
            self.src_records = [record]
            try:
                super().copy_files()
            except Exception as error:
                self.log.warning('%s is not collected, or not all of it: %s',
                                 record['filename'], error)

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        if self.get_size(src) > 1000 * self.coursedir.max_dir_size:
            raise OSError('its files are too large')
        shutil.copytree(
            src, dest, symlinks=True,
            copy_function=partial(_copy, owner=os.lstat(src).st_uid),
            ignore=ignore_patterns(
                self.coursedir.ignore, self.coursedir.include,
                self.coursedir.max_file_size, self.log))


def _copy(src, dest, owner):
    """Copy a file, or raise OSError if it is no plain file of the owner.

    Without a look at its path before, because a student can change a folder
    while it is copied.
    """
    with open(os.open(src, PLAIN), 'rb') as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise OSError('it is no plain file that the student owns')
        with open(dest, 'wb') as copy:
            shutil.copyfileobj(file, copy)
    os.utime(dest, (status.st_mtime, status.st_mtime))


def _time(folder):
    """The time in a collected folder, or None if its text is no time."""
    try:
        path = os.path.join(folder, 'timestamp.txt')
        with open(os.open(path, PLAIN), errors='replace') as file:
            return parse_utc(file.read(100).strip())
    except Exception:  # of many types: a student can write any text there
        return None


c = get_config()  # type: ignore[name-defined]  # noqa: F821 (Jupyter's)
c.CourseDirectory.course_id = 'd2lps'
c.Autograde.exporter_class = Refused
c.ExchangeFactory.collect = Collect
