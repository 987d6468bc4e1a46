"""A small term, by the program that tries one with 60 students."""
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from handins import ROOT

from teaching import grade


@pytest.mark.full
def test_a_term_ends_with_a_table_that_is_right(monkeypatch, capsys):
    monkeypatch.setattr(grade, 'HIDDEN', grade.HIDDEN)  # it has others
    spec = spec_from_file_location('term', ROOT / 'tests' / 'benchmarks'
                                   / 'term.py')
    term = module_from_spec(spec)
    spec.loader.exec_module(term)
    assert not term.main(['--students', '4', '--exercises', 'minibatch',
                          'tree', 'checkpoint'])
    said = capsys.readouterr().out
    assert 'the table is right' in said and 'minutes: week 2 anew' in said
