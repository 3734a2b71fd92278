"""The table of times at the end of a run, and what failed."""

import re

# Programs below it are added up.
SHORT = 2.0
# Of a failed test's message: its first lines, its last, and the characters of a line.
FIRST, LAST, WIDTH = 6, 12, 400


def show(results, wall):
    """Each lane, and its jobs."""
    ran = [result for result in results if result.state in ('passed', 'failed')]
    lanes = {}
    for result in sorted(ran, key=lambda result: result.begin):
        lanes.setdefault(result.job.lane, []).append(result)
    print(f'\n== times in seconds\n{"":40}{"begin":>7}{"wall":>8}{"CPU":>8}')
    for lane, of_lane in lanes.items():
        row(lane, of_lane[0].begin, sum(it.wall for it in of_lane), sum(it.cpu for it in of_lane))
        for result in of_lane:
            if result.wall >= SHORT or result.state == 'failed':
                mark = '' if result.state == 'passed' else '  FAILED'
                row(f'  {result.job.name}{mark}', result.begin, result.wall, result.cpu)
        short = [it for it in of_lane if it.wall < SHORT and it.state != 'failed']
        if short:
            row(f'  {len(short)} below {SHORT:.0f} s', short[0].begin, sum(it.wall for it in short),
                sum(it.cpu for it in short))
    row('all', 0, wall, sum(it.cpu for it in ran))


def row(name, begin, wall, cpu):
    print(f'{name:40}{begin:7.0f}{wall:8.1f}{cpu:8.1f}')


def failures(results):
    """What did not pass, each failed test with its message: above, that is between thousands of lines."""
    for result in results:
        if result.state in ('failed', 'not run'):
            print(f'{result.state}: {result.job.name}{": " + result.why if result.why else ""}')
            for test, message in messages(result.output):
                print(f'  {test}:\n    {message}')


def messages(output):
    """The failed tests of a program of Rust's test harness, and how what each said begins and ends. A test may quote the
    panics of a process of its own."""
    for test, printed in re.findall(r'^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)', output, re.M | re.S):
        said = re.split(r'^stack backtrace:$', printed, maxsplit=1, flags=re.M)[0]
        panic = said.find(' panicked at ')
        said = said[panic + 1:] if panic >= 0 else printed
        lines = [line[:WIDTH] for line in said.strip().splitlines() if line and not line.startswith('note: run with')]
        if len(lines) > FIRST + LAST:
            lines[FIRST:-LAST] = ['[...]']
        yield test, '\n    '.join(lines)
