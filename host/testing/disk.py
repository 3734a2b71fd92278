"""Finds out before the tests begin that they would fill the disk: afterwards each of them fails in its own words."""

import os
import shutil

GIB = 1 << 30
# Temporary directories and new programs of a run. A first build takes more, and fails as cargo's when it does not fit.
NEEDED = 4 * GIB


def too_full(directories):
    """What to print if one of these has no room; empty if all have."""
    for directory in directories:
        free = shutil.disk_usage(existing(directory)).free
        if free < NEEDED:
            return (f'error: {directory} has {free / GIB:.1f} GiB free, and the tests need {NEEDED // GIB} GiB. '
                    'Old build results can go: `cargo clean`, or delete the directory `target` in $SCUPPER_CACHE')
    return ''


def existing(directory):
    """It, or the closest directory above it that is there."""
    while not os.path.isdir(directory):
        directory = os.path.dirname(os.path.abspath(directory))
    return directory
