"""How host/run-tests starts, measures and reports the parts of a run."""
