"""The pages of the book, as `make book` builds them."""
import pytest

pytestmark = pytest.mark.processes


def test_the_first_page_is_where_one_looks_for_it(book):
    words = (book / 'index.html').read_text()
    assert 'url=book/index.html' in words
    assert (book / 'book' / 'index.html').exists()
