"""The parts of `openstack-testbed`."""
