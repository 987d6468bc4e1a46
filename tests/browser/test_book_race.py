"""The race of the first page, as a reader holds its clock."""
import pytest

pytestmark = pytest.mark.full
FIRST = 'docs/book/index'
SHOWN = '''() => [...document.querySelectorAll('.race-picture')].map(it =>
  [...it.querySelectorAll('text')].filter(one => one.checkVisibility({
    visibilityProperty: true}) && /^(round|done)/.test(one.textContent)
    ).map(one => one.textContent))'''
MOVING = '''() => [...document.querySelectorAll('.race [data-sends]')].filter(
  it => it.checkVisibility({visibilityProperty: true})).map(it =>
  it.getBoundingClientRect()).map(({x, y}) => [Math.round(x), Math.round(y)])
'''


def says(tab):
    return tab.locator('.race-says').inner_text()


def test_what_is_seen_is_what_the_clock_says(reader):
    tab = reader.open(FIRST, 1280)
    time = tab.locator('.race input')
    assert tab.locator('.race output').inner_text() == '6 ms'
    assert tab.evaluate(SHOWN) == [['round 1 of 2'], ['round 1 of 2']]
    assert len(tab.evaluate(MOVING)) == 3 + 12
    before = tab.evaluate(MOVING)
    time.focus()
    tab.keyboard.press('ArrowRight')
    assert tab.locator('.race output').inner_text() == '6.5 ms'
    after = tab.evaluate(MOVING)
    assert len(after) == len(before) and all(
        here != there for here, there in zip(before, after))
    time.fill('15')
    assert tab.evaluate(SHOWN) == [['round 1 of 2'], ['done: 15 ms']]
    assert len(tab.evaluate(MOVING)) == 3  # and none is hidden by the switch
    assert says(tab).startswith('At 15 ms: “GPU 0 adds everything”: round')
    assert 'was done at 15 ms' in time.get_attribute('aria-valuetext')
    tab.keyboard.press('End')
    assert says(tab).endswith('60 ms: 4 times as long.')
    assert tab.evaluate(SHOWN) == [['done: 60 ms'], ['done: 15 ms']]
    tab.keyboard.press('Home')
    assert tab.evaluate(SHOWN) == [['round 1 of 2'], ['round 1 of 2']]


def test_other_plans_and_cables_can_be_chosen(reader):
    tab = reader.open(FIRST, 1280)
    first, second = tab.locator('.race-lane select').all()
    second.select_option('cpu')
    assert tab.locator('.race input').get_attribute('max') == '80'
    tab.locator('.race-links select').select_option('ring')
    assert second.input_value() == 'gather'  # no CPU is on these cables
    assert second.locator('option:disabled').count() == 1
    first.select_option('ring')
    second.select_option('ring')
    tab.locator('.race input').press('End')
    assert says(tab) == 'At 13.3 ms: A tie: both took 13.3 ms.'
    # An end between two steps of the slider is an end in the pictures, too.
    assert tab.evaluate(SHOWN) == [['done: 13.3 ms'], ['done: 13.3 ms']]
    assert not tab.evaluate(MOVING)
    first.select_option('gather')
    tab.locator('.race input').press('End')
    assert tab.evaluate(SHOWN) == [['done: 35.6 ms'], ['done: 13.3 ms']]
    assert not tab.evaluate(MOVING)


def test_it_plays_slowly_enough_and_pauses(reader):
    tab = reader.open(FIRST, 1280)
    long, shown = tab.evaluate('''async () => {
      const play = document.querySelector('.race button');
      const begin = performance.now();
      play.click();
      await new Promise(done => setTimeout(done, 700));
      const words = play.textContent;
      play.click();
      return [performance.now() - begin, words];
    }''')
    assert shown == 'Pause'
    now = float(tab.locator('.race output').inner_text().split()[0])
    assert 0 < now <= long * 15 / 4000 + 0.1  # 15 ms take four seconds
    tab.wait_for_timeout(200)
    assert float(tab.locator('.race output').inner_text().split()[0]) == now
    tab.locator('.race button').press('ArrowLeft')
    after = float(tab.locator('.race output').inner_text().split()[0])
    assert after == max(0, round(now - 0.5, 1))


def test_on_a_phone_the_clock_stays_above_both_plans(finger):
    tab = finger.open(FIRST, 390)
    first, second = [one.bounding_box() for one in
                     tab.locator('.race-lane').all()]
    assert second['y'] >= first['y'] + first['height']
    tab.evaluate("document.querySelectorAll('.race-picture')[1]"
                 ".scrollIntoView({block: 'end'})")
    tab.wait_for_timeout(200)
    box = tab.locator('.race-clock').bounding_box()
    assert 0 <= box['y'] < 120
    low = tab.locator('.race-picture').nth(0).bounding_box()
    assert low['y'] >= box['y']  # both plans and the clock are seen at once
    assert tab.evaluate('document.documentElement.scrollWidth') <= 390


def test_on_paper_it_is_one_moment_and_answers_are_open(reader):
    tab = reader.open(FIRST, 1280)
    tab.locator('.race input').fill('13')
    tab.emulate_media(media='print')
    assert not tab.locator('.race-clock, .race-links, article summary'
                           ).filter(visible=True).count()
    assert tab.evaluate(SHOWN) == [['round 1 of 2'], ['round 2 of 2']]
    assert says(tab).startswith('At 13 ms')
