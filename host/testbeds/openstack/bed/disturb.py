"""Situations that no API request can create: old records, paused services."""

import os
import signal
import time
import uuid

from .api import Api
from .processes import record, session_members, start_time
from .services import sql
from .state import COMPUTES, Failure

# Marks the rows that this module creates.
NODE = 'testbed-record'


def cmd_records(bed, args):
    """Finished cold migrations away from compute-a, of servers that were deleted before they were confirmed."""
    bed.need()
    begun = '2026-01-01 00:00:00'
    rows = []
    for i in range(args.count):
        server = uuid.uuid5(uuid.NAMESPACE_DNS, 'record-%d' % (i % args.servers))
        rows.append("('%s','%s','%s','%s','%s','%s','finished','%s','%s','migration',0,0,0)" % (
            begun, begun, COMPUTES[0], COMPUTES[1], NODE, NODE, server, uuid.uuid4()))
    sql(bed, 'set foreign_key_checks=0; insert into nova.migrations (created_at, updated_at, '
        'source_compute, dest_compute, source_node, dest_node, status, instance_uuid, uuid, '
        'migration_type, hidden, deleted, cross_cell_move) values ' + ','.join(rows))
    bed.settings['records'] = True
    bed.save()


def forget_records(bed):
    if bed.settings.pop('records', False):
        sql(bed, "delete from nova.migrations where source_node='%s'" % NODE)
        bed.save()


def cmd_ghost(bed, args):
    """A compute service that was disabled, and whose host is gone for good. Nova lists it first."""
    bed.need()
    ghost = uuid.uuid5(uuid.NAMESPACE_DNS, args.host)
    begun = '2026-01-01 00:00:00'
    sql(bed, "insert into nova.services (id, created_at, uuid, host, `binary`, topic, report_count, disabled, "
        "disabled_reason, last_seen_up, forced_down, version, deleted) select least(min(id), 0) - 1, '%s', '%s', "
        "'%s', 'nova-compute', 'compute', 1, 1, '%s', '%s', 0, max(version), 0 from nova.services; "
        "insert into nova_api.host_mappings (created_at, cell_id, host) select '%s', max(cell_id), '%s' "
        "from nova_api.host_mappings" % (begun, ghost, args.host, args.reason, begun, begun, args.host))
    bed.settings['ghosts'] = bed.settings.get('ghosts', []) + [args.host]
    bed.save()


def forget_ghosts(bed):
    for host in bed.settings.pop('ghosts', []):
        sql(bed, "delete from nova.services where host='%s'; "
            "delete from nova_api.host_mappings where host='%s'" % (host, host))
        bed.save()


def cmd_cell2(bed, args):
    """The second cell, as Nova sees it if its database is gone: every query of it fails."""
    bed.need()
    if bed.settings.get('cell2', 'up') == args.state_of_cell:
        return
    tail = ('', '_gone') if args.state_of_cell == 'down' else ('_gone', '')
    for table in ('services', 'instances', 'migrations'):
        sql(bed, 'rename table nova_cell2.%s%s to nova_cell2.%s%s' % (
            table, tail[0], table, tail[1]))
    bed.settings['cell2'] = args.state_of_cell
    bed.save()


def cmd_user(bed, args):
    """Enables or disables a user of Keystone; its tokens end."""
    bed.need()
    enable(bed, args.name, args.enable)


def enable(bed, user, enabled=True):
    path = '/v3/users/' + bed.settings['users'][user]
    Api(bed).call('PATCH', 'keystone', path, {'user': {'enabled': enabled}})
    if not enabled:
        # A token that Keystone was just checking may be kept in its cache as
        # valid. A new password, here the same one, ends all tokens once more,
        # and nobody logs in meanwhile.
        time.sleep(1)
        password = {'password': bed.settings['password']}
        Api(bed).call('PATCH', 'keystone', path, {'user': password})
    others = [other for other in bed.settings.pop('disabled', []) if other != user]
    bed.settings['disabled'] = others + [user] * (not enabled)
    bed.save()


def cmd_pause(bed, args):
    """Pauses the process. Its requests wait."""
    send(bed, args.name, signal.SIGSTOP)


def cmd_resume(bed, args):
    send(bed, args.name, signal.SIGCONT)


def send(bed, name, what):
    bed.need()
    rec = record(bed, name)
    if not rec or start_time(rec['pid']) != rec['start']:
        raise Failure('%s is not running' % name)
    for pid in session_members(rec['pid']):
        os.kill(pid, what)
    # The signal takes effect a moment later.
    time.sleep(0.1)
