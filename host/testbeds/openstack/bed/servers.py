"""The commands that create, show and remove servers."""

import argparse
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from .api import Api
from .disturb import enable, forget_ghosts, forget_records
from .processes import wait_for
from .state import COMPUTES, Failure, say, say_out


def cmd_boot(bed, args):
    bed.need()
    begun = time.monotonic()
    api = Api(bed, project=args.project)
    meta = dict(item.split('=', 1) for item in args.meta)
    if args.mode:
        meta['testbed-migrate'] = args.mode
    if args.seconds is not None:
        meta['testbed-seconds'] = str(args.seconds)

    # Here once, rather than in each thread below.
    if not api.token:
        api.login()

    def one(i):
        body = {'server': {
            'name': '%s-%d' % (args.prefix, i), 'networks': 'none',
            'flavorRef': args.flavor, 'metadata': meta}}
        if args.volume:
            body['server']['block_device_mapping_v2'] = [{
                'uuid': str(uuid.uuid4()), 'source_type': 'volume',
                'destination_type': 'volume', 'boot_index': 0}]
        else:
            body['server']['imageRef'] = bed.settings['image']
        if args.host:
            body['server']['host'] = args.host
        return api.nova('POST', '/servers', body)['server']['id']

    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(one, range(args.count)))

    def ours(status):
        found = api.nova('GET', '/servers?limit=1000&status=' + status)
        return {x['id'] for x in found['servers']} & set(ids)

    # No server is ready sooner, and polling takes CPU time from the boots.
    time.sleep(1)
    until = time.monotonic() + args.timeout
    while building := ours('BUILD'):
        if time.monotonic() > until:
            raise Failure('%d servers are not active' % len(building))
        time.sleep(0.5)
    if failed := ours('ERROR'):
        raise Failure('servers in state ERROR: ' + ' '.join(sorted(failed)))
    print('\n'.join(ids))
    say('%d servers in %.1f s' % (len(ids), time.monotonic() - begun))


def everything(api):
    out, path = [], '/servers/detail?all_tenants=1&limit=500'
    while path:
        page = api.nova('GET', path)
        out += page['servers']
        path = None
        for link in page.get('servers_links', []):
            if link['rel'] == 'next':
                path = '/' + link['href'].split('/v2.1/', 1)[1]
    return out


def cmd_list(bed, args):
    bed.need()
    for s in sorted(everything(Api(bed)), key=lambda s: s['name']):
        say_out('%s %-16s %-14s %-10s %s %s' % (
            s['id'], s['name'], s['OS-EXT-SRV-ATTR:host'], s['status'],
            s['OS-EXT-STS:task_state'] or '-', json.dumps(s['metadata'])))


def cmd_purge(bed, args):
    bed.need()
    begun = time.monotonic()
    api = Api(bed)
    forget_records(bed)
    forget_ghosts(bed)
    for user in bed.settings.get('disabled', []):
        enable(bed, user)
    gone = 0
    for s in everything(api):
        # A server with a stuck live migration cannot be deleted before that is aborted.
        if s['OS-EXT-STS:task_state'] == 'migrating':
            for m in api.nova('GET', '/servers/%s/migrations' % s['id'],
                              ok=(404,)).get('migrations', []):
                api.nova('DELETE', '/servers/%s/migrations/%s' % (
                    s['id'], m['id']), ok=(400, 404, 409))
        api.nova('DELETE', '/servers/' + s['id'], ok=(404, 409))
        gone += 1
    until = time.monotonic() + 120
    if gone:
        time.sleep(0.5)
    while left := everything(api) if gone else []:
        if time.monotonic() > until:
            raise Failure('some servers remain')
        for s in left:
            if s['OS-EXT-STS:task_state'] != 'deleting':
                api.nova('DELETE', '/servers/' + s['id'], ok=(404, 409))
        time.sleep(0.5)
    for s in api.nova('GET', '/os-services?binary=nova-compute')['services']:
        if s['forced_down'] or s['status'] == 'disabled':
            api.nova('PUT', '/os-services/' + s['id'],
                     {'status': 'enabled', 'forced_down': False})
    say('%d servers deleted in %.1f s' % (gone, time.monotonic() - begun))


def cmd_verify(bed, args):
    """Drains as the plugin does, with only the public API."""
    bed.need()
    cmd_purge(bed, args)
    api, begun = Api(bed), time.monotonic()

    def mark(what):
        print('%6.1f s  %s' % (time.monotonic() - begun, what), flush=True)

    def here():
        return api.nova('GET', '/servers?all_tenants=1&limit=1000&host='
                        + COMPUTES[0])['servers']

    args = argparse.Namespace(
        count=args.count, host=COMPUTES[0], project='tenant-1', meta=[],
        prefix='verify', flavor='small', volume=False, mode=None, seconds=None, timeout=300)
    cmd_boot(bed, args)
    mark('booted on ' + COMPUTES[0])
    service = api.nova('GET', '/os-services?binary=nova-compute&host='
                       + COMPUTES[0])['services'][0]['id']
    api.nova('PUT', '/os-services/' + service,
             {'status': 'disabled', 'disabled_reason': 'verify'})
    for server in here():
        api.nova('POST', '/servers/%s/action' % server['id'],
                 {'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
    mark('%d live migrations asked for' % args.count)
    wait_for('the drain', lambda: not here(), 60 + 10 * args.count, every=0.5)
    mark('no server is left')
    api.nova('PUT', '/os-services/' + service, {'status': 'enabled'})
    mark('enabled')
