"""A reader kills a server with a click, in a real JupyterLab."""
import pytest
from test_lab import (SETUP, lab, opened, pytestmark,  # noqa: F401
                      run_all)

PANEL = '''import tempfile
folder = tempfile.TemporaryDirectory()
c = d2lps.Cluster(2, 2, restarts=3)
panel = pictures.TrainingPanel(c, folder.name, num_steps=400, batch_size=32)
'''
WAIT = '''trained = await panel.wait()
print('went on:', len(trained.losses), [death.who for death in c.deaths])
c.close()
'''
LIMIT = 120_000  # ms


@pytest.mark.parametrize('cells', [[SETUP, PANEL], [SETUP, PANEL, WAIT]],
                         ids=['idle', 'busy'])
def test_a_click_kills_and_training_goes_on(lab, tmp_path, cells):  # noqa: F811
    """Whether the kernel is idle meanwhile, or waits in another cell."""
    from playwright.sync_api import expect
    with opened(lab, tmp_path, cells) as page:
        kill = run_all(page, page.locator('button', has_text='kill server'))
        image = page.locator('.jp-OutputArea-output img').first
        image.wait_for(timeout=LIMIT)
        before = image.get_attribute('src')
        expect(image).not_to_have_attribute('src', before, timeout=LIMIT)
        page.locator('.widget-dropdown select').select_option('server 1')
        kill.click()
        page.get_by_text('server 1 was killed').wait_for(timeout=LIMIT)
        expect(kill).to_be_disabled(timeout=LIMIT)  # it has ended by itself
        if len(cells) == 3:
            page.get_by_text("went on: 400 ['server 1']").wait_for(
                timeout=LIMIT)
        image.screenshot(path=tmp_path / 'end.png')
