"""The test programs of the workspace: what cargo has, and what it reports while it builds them."""

import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass


@dataclass
class Program:
    """A test target, or the unit tests of a library or a binary."""
    name: str
    target: str
    is_unit: bool
    folder: str
    # Once it is built.
    file: str | None = None


class Programs:
    """All of the workspace, by the file that cargo compiles."""

    def __init__(self):
        read = subprocess.run(['cargo', 'metadata', '--locked', '--no-deps', '--format-version', '1'],
                              check=True, stdout=subprocess.PIPE).stdout
        targets = [(target, os.path.dirname(package['manifest_path']))
                   for package in json.loads(read)['packages'] for target in package['targets'] if target['test']]
        # Two crates have tests of the command line's help.
        times = Counter(target['name'] for target, _ in targets if target['kind'] == ['test'])
        self.by_source = {}
        for target, folder in targets:
            name, is_unit = target['name'], target['kind'] != ['test']
            if is_unit:
                name += ' (bin)' if target['kind'] == ['bin'] else ' (lib)'
            elif times[name] > 1:
                name = f'{os.path.basename(folder)} {name}'
            self.by_source[target['src_path']] = Program(name, target['name'], is_unit, folder)

    def all(self):
        return self.by_source.values()

    def read(self, line):
        """Reads a line of `cargo --message-format json`, and returns the name of the program that it reports as built."""
        try:
            message = json.loads(line)
        except ValueError:
            return []
        if message['reason'] != 'compiler-artifact' or not message['profile']['test'] or not message['executable']:
            return []
        # `--lib` also builds libraries that have no tests.
        program = self.by_source.get(message['target']['src_path'])
        if not program:
            return []
        program.file = message['executable']
        return [f'program {program.name}']
