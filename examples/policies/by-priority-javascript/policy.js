// Evicts the pods in waves by priority, the lowest first: one wave for each priority.

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

export const planner = {
  makePlan(drain, node, pods, draft) {
    const priorityOf = new Map(pods.map((pod) => [pod.uid, pod.priority]));
    // Earlier policies decided which pods leave; this one changes only the waves.
    const byPriority = new Map();
    for (const uid of draft.waves.flatMap((wave) => [...wave.pods])) {
      const priority = priorityOf.get(uid);
      byPriority.set(priority, [...(byPriority.get(priority) ?? []), uid]);
    }
    const waves = [...byPriority]
      .sort(([low], [high]) => low - high)
      .map(([priority, uids]) => ({ name: `priority ${priority}`, pods: uids }));
    return { ...draft, waves };
  },
};
