"""The page on what MXNet does by itself says what happens."""
import re
from pathlib import Path

import pytest
from d2lps.cluster.bare import bare_mxnet

pytestmark = pytest.mark.full

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'bare-mxnet.md'
RUNS = re.findall(r'^## (.*?)$.*?^```python\n(.*?)^```$\n+^```\n(.*?)^```$',
                  PAGE.read_text(), re.M | re.S)


def test_all_are_found():
    assert len(RUNS) == PAGE.read_text().count('\n## ') == 5


@pytest.mark.parametrize('title, script, written', RUNS,
                         ids=[title for title, *_ in RUNS])
def test_it_writes_what_the_page_says(title, script, written):
    """The workers' texts, sorted; one that wrote nothing is an empty line."""
    seconds = 4 if title.startswith('`pull`') else 1
    texts = sorted(bare_mxnet(script, seconds=seconds))
    assert ''.join(text or '\n' for text in texts) == written
