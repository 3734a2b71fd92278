// Evicts the pods of each wave in waves by priority, the lowest first: one wave for each priority.

export const about = {
  describe: () => ({
    name: 'by-priority-javascript',
    version: '0.1.0',
    summary: 'Evicts pods in waves by priority, lowest first',
    stateVersion: 1,
    wants: [],
    configSchema: '',
  }),
  checkConfig: () => [],
};

// An earlier policy holds such a wave until a time after the start of the drain: `jobs-after-10m`.
const isHeld = (wave) => /-after-\d+[smh](-grace-\d+[smh])?$/.test(wave.name);

// The parts of a wave. They share its time, and each has its other limits.
function split(wave, priorityOf) {
  const priorities = [...new Set(wave.pods.map(priorityOf))].sort((low, high) => low - high);
  const share = (time) => time / BigInt(priorities.length) || 1n;
  return priorities.map((priority) => ({
    ...wave,
    name: `${wave.name} priority ${priority}`,
    pods: wave.pods.filter((uid) => priorityOf(uid) === priority),
    timeout: wave.timeout === undefined ? undefined : share(wave.timeout),
  }));
}

export const planner = {
  makePlan(drain, node, pods, draft) {
    const priorities = new Map(pods.map((pod) => [pod.uid, pod.priority]));
    const priorityOf = (uid) => priorities.get(uid);
    // Earlier policies decided which pods leave, and which may stay until a time; this one changes only the order.
    const waves = draft.waves.flatMap((wave) => (isHeld(wave) ? [wave] : split(wave, priorityOf)));
    return { ...draft, waves };
  },
};
