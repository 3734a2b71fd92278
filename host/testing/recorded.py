"""Runs a test program and then repeats every drain that the `scupper` in it has recorded.

    recorded.py SCUPPER PROGRAM [ARGUMENT...]

A drain whose repetition differs is a failure even if all tests have passed: the engine of its process was not as pure as
it is said to be, or the recording lacks something.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

# Drivers delete the oldest recordings, and all tests of a program share a directory.
LIMITS = 'number=100000,size=1Gi'
# A process that is killed in its first moment has not written yet how its drain began.
EMPTY = 'it does not begin with a header'


def main(scupper, *command):
    with tempfile.TemporaryDirectory(prefix='scupper-recordings-') as directory:
        recorded = {'SCUPPER_RECORD': directory + '/', 'SCUPPER_RECORDINGS': directory, 'SCUPPER_RECORDING_LIMITS': LIMITS}
        code = subprocess.run(command, env={**os.environ, **recorded}).returncode
        return code or check(scupper, sorted(glob.glob(directory + '/*.gz')))


def check(scupper, files):
    """Prints how many are the same, and each that is not."""
    if not files:
        return 0
    replay = subprocess.run([scupper, 'replay', '-o', 'json', *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    found = list(documents(replay.stdout))
    differ = [f'{one["file"]}: {one["replay"]["difference"]}' for one in found if not one['replay']['same']]
    errors = [line for line in replay.stderr.splitlines() if line.startswith('error: ')]
    empty = [line for line in errors if EMPTY in line]
    wrong = [line for line in errors if line not in empty]
    if len(found) + len(errors) != len(files) or len(empty) > len(files) // 10 + 1:
        wrong.append(f'{len(found)} repeated, {len(empty)} empty; exit code {replay.returncode}; {replay.stderr[-2000:]}')
    print(f'drains recorded: {len(files)}; repeated the same: {len(found) - len(differ)}')
    for line in differ + wrong:
        print(f'---- recordings stdout ----\n{line}')
    return 1 if differ or wrong else 0


def documents(text):
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        yield document


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
