"""Keeps pods that have the label example.com/keep, as ../keep-labelled does in Rust."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.about import Description
from wit_world.imports.types import Decision, Verdict

LABEL = "example.com/keep"
LEAVE = (Verdict.EVICT, Verdict.DELETE, Verdict.AWAIT_COMPLETION)


def readable(function):
    """Without this, an error of Python ends the call without a word of it. So the plan is refused with the error and its line."""

    def call(*arguments):
        try:
            return function(*arguments)
        except Err:
            raise
        except Exception as error:
            place = error.__traceback__
            while place.tb_next:
                place = place.tb_next
            raise Err(f"{type(error).__name__}: {error}, at line {place.tb_lineno} of policy.py") from error

    return call


class About(exports.About):
    def describe(self):
        return Description(
            name="keep-labelled-python",
            version="0.1.0",
            summary=f"Keeps pods that have the label {LABEL}",
            state_version=1,
            wants=[],
            config_schema="",
        )

    def check_config(self):
        return []


class Planner(exports.Planner):
    @readable
    def make_plan(self, drain, node, pods, draft):
        marked = {pod.uid for pod in pods if any(label.key == LABEL for label in pod.labels)}
        # Only pods that would leave: others keep the verdict of the previous policy.
        kept = {decision.pod for decision in draft.decisions if decision.pod in marked and decision.verdict in LEAVE}
        draft.decisions = [
            Decision(decision.pod, Verdict.KEEP, f"it has the label {LABEL}", "") if decision.pod in kept else decision
            for decision in draft.decisions
        ]
        # A wave holds exactly the pods that leave, and is never empty.
        for wave in draft.waves:
            wave.pods = [pod for pod in wave.pods if pod not in kept]
        draft.waves = [wave for wave in draft.waves if wave.pods]
        return draft
