"""Situations that no API request can create: old records, paused services."""

import os
import signal
import time
import uuid

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
