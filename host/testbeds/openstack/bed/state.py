"""One testbed: its state, and the constants and names that all parts share."""

import json
import os
import sys

CACHE = os.environ.get('SCUPPER_CACHE') or '/var/cache/scupper'
SOFTWARE = os.path.join(CACHE, 'testbeds', 'openstack')
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIB = os.path.join(HERE, 'lib')
REGION = 'RegionOne'
PORTS = ['keystone', 'placement', 'glance', 'nova', 'network',
         'rabbit', 'rabbit-dist', 'epmd']
COMPUTES = ['compute-a', 'compute-b']
# Those of a second cell, with its own database, messages and conductor.
CELL2_COMPUTES = ['compute-c']


def say(text):
    print(text, file=sys.stderr, flush=True)


def say_out(text):
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os._exit(0)


class Failure(Exception):
    pass


class Bed:
    def __init__(self, state):
        self.dir = os.path.abspath(state)
        self.settings_path = self.path('settings.json')
        self.settings = {}
        if os.path.exists(self.settings_path):
            with open(self.settings_path) as f:
                self.settings = json.load(f)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def save(self):
        tmp = self.settings_path + '.new'
        with open(os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                  'w') as f:
            json.dump(self.settings, f, indent=1, sort_keys=True)
        os.replace(tmp, self.settings_path)

    def need(self):
        if not self.settings:
            raise Failure('no testbed in %s: run `up` first' % self.dir)

    @property
    def has_cell2(self):
        return self.settings.get('cells', 1) > 1

    @property
    def computes(self):
        return COMPUTES + (CELL2_COMPUTES if self.has_cell2 else [])

    @property
    def conductors(self):
        return ['nova-conductor'] + ['nova-conductor-2'] * self.has_cell2

    def rabbit_url(self, vhost=''):
        return 'rabbit://testbed:%s@127.0.0.1:%d/%s' % (
            self.settings['password'], self.port('rabbit'), vhost)

    def port(self, name):
        return self.settings['port_base'] + PORTS.index(name)

    def url(self, name, tail=''):
        return 'http://127.0.0.1:%d%s' % (self.port(name), tail)

    @property
    def software(self):
        return self.settings['software']

    def tool(self, name):
        return os.path.join(self.software, 'venv', 'bin', name)

    def sysroot(self, *parts):
        return os.path.join(self.software, 'sysroot', *parts)

    def db(self, name):
        return ('mysql+pymysql://root@localhost/%s?unix_socket=%s&charset=utf8'
                % (name, self.path('db.sock')))
