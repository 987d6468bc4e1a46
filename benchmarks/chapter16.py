"""Which learning rate suits which way of waiting? Five seeds for each.

Each of four workers is slow in turn, as in chapter 16. Written to
notebooks/results/16-rates.csv: virtual seconds until the first point with a
test accuracy of 80%, empty if there was none, and the mean accuracy of the
last three points. Takes a quarter of an hour on one core:

    python benchmarks/chapter16.py [seeds...]
"""
import csv
import sys
from pathlib import Path

from d2lps import follow, step_times, virtual_clock

RESULTS = Path(__file__).parents[1] / 'notebooks/results/16-rates.csv'
WAYS = {'sync': ('sync', 0), 'bound 4': (4, 0), 'async': ('async', 0),
        'backup 1': ('sync', 1)}
RATES, SEEDS = (0.0125, 0.025, 0.05, 0.1, 0.2), (0, 100, 200, 300, 400)
NUM_GRADIENTS, NUM_POINTS, TARGET = 360, 18, 0.8


def learn(way, lr, seed):
    """(virtual seconds until the target, or '', and the last accuracy)."""
    consistency, backups = WAYS[way]
    plan = virtual_clock(step_times('a new straggler each step'),
                         consistency, NUM_GRADIENTS, backups)
    points, _ = follow(plan, lr, num_points=NUM_POINTS, seed=seed)
    reached = [point.seconds for point in points if point.accuracy >= TARGET]
    last = [point.accuracy for point in points[-3:]]
    return (f'{reached[0]:.0f}' if reached else '',
            round(float(sum(last) / len(last)), 3))


def main(seeds):
    part = RESULTS.with_name(f'{RESULTS.name}.part')
    with open(part, 'w', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(['way', 'lr', 'seed', 'seconds', 'accuracy'])
        for way in WAYS:
            for lr in RATES:
                for seed in seeds:
                    writer.writerow([way, lr, seed, *learn(way, lr, seed)])
    part.replace(RESULTS)  # only now: the old table is whole until the end


if __name__ == '__main__':
    main([*map(int, sys.argv[1:])] or SEEDS)
