"""A minimal client for the setup and the helpers."""

import json
import urllib.error
import urllib.request

from .state import Failure


# Tokens by testbed, project and user, while this process lives.
TOKENS = {}


class Api:
    """A minimal client for the setup and the helpers."""

    def __init__(self, bed, project='admin', user='admin'):
        self.bed, self.project, self.user = bed, project, user
        self.key = (bed.dir, project, user)
        self.token = TOKENS.get(self.key, '')

    def login(self):
        body = {'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {
                'name': self.user, 'domain': {'id': 'default'},
                'password': self.bed.settings['password']}}},
            'scope': {'project': {'name': self.project,
                                  'domain': {'id': 'default'}}}}}
        _, headers, _ = http('POST', self.bed.url('keystone',
                                                  '/v3/auth/tokens'), body)
        self.token = TOKENS[self.key] = headers['X-Subject-Token']

    def call(self, method, service, path, body=None, micro=None, ok=(),
             raw=None):
        kept = bool(self.token)
        if not kept:
            self.login()
        headers = {'X-Auth-Token': self.token}
        if micro:
            headers['OpenStack-API-Version'] = micro
        try:
            _, _, out = http(method, self.bed.url(service, path), body,
                             headers, raw)
        except urllib.error.HTTPError as e:
            if e.code == 401 and kept:
                # The token has expired, or its state was wiped.
                self.token = ''
                return self.call(method, service, path, body, micro, ok, raw)
            text = e.read().decode(errors='replace')
            if e.code in ok:
                return {}
            raise Failure('%s %s: %d %s' % (method, path, e.code, text[:300]))
        return out

    def nova(self, method, path, body=None, micro='compute 2.96', ok=()):
        return self.call(method, 'nova', '/v2.1' + path, body, micro, ok)


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def http(method, url, body=None, headers=None, raw=None):
    data = raw
    headers = dict(headers or {})
    if body is not None:
        data = json.dumps(body).encode()
        headers['Content-Type'] = 'application/json'
    elif raw is not None:
        headers['Content-Type'] = 'application/octet-stream'
    req = urllib.request.Request(url, data=data, headers=headers,
                                 method=method)
    with OPENER.open(req, timeout=120) as resp:
        text = resp.read()
        out = json.loads(text) if text[:1] in (b'{', b'[') else {}
        return resp.status, resp.headers, out


def answers(url):
    try:
        with OPENER.open(url, timeout=5) as resp:
            return resp.status < 500
    except urllib.error.HTTPError as e:
        return e.code < 500


def computes_up(api, hosts):
    up = {s['host'] for s in api.nova(
        'GET', '/os-services?binary=nova-compute')['services']
        if s['state'] == 'up'}
    return set(hosts) <= up


def hosts_mapped(api, hosts):
    have = {h['hypervisor_hostname'] for h in api.nova(
        'GET', '/os-hypervisors')['hypervisors']}
    return set(hosts) <= have


def scheduler_up(api):
    return any(s['binary'] == 'nova-scheduler' and s['state'] == 'up'
               for s in api.nova('GET', '/os-services')['services'])
