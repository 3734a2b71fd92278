#!/bin/sh
# Has Scupper's driver drain each node that Karpenter removes. Karpenter waits meanwhile for the pods with the annotation
# karpenter.sh/do-not-disrupt: "true", and evicts all others at once.
#
# It needs to get and list nodes, and to get, create and patch lifecycleevents.lifecycle.k8s.io.
# GROUP: lifecycle.scupper.dev with the overlay own-group. SCOPE: node for drivers with --scope node.
set -eu
driver=${DRIVER:-drain.slm.k8s.io}
group=${GROUP:-lifecycle.k8s.io}

while sleep "${EVERY:-5}"; do
    for node in $(kubectl get nodes -o jsonpath='{.items[?(@.metadata.deletionTimestamp)].metadata.name}'); do
        state='exists {range .status.conditions[?(@.type=="Drained")]}{.status} {.message}{end}'
        state=$(kubectl get node "$node" --ignore-not-found -o jsonpath="$state") || continue
        case $state in
        # Drained for this event: an earlier drain may have been of some pods only.
        "" | "exists True drain karpenter-$node:"*) continue ;;
        esac
        [ "${SCOPE:-}" = node ] && suffix=.$node || suffix=
        # Changes nothing while that drain runs. One that has failed begins again.
        kubectl apply -f - <<EOF || continue
apiVersion: $group/v1alpha1
kind: LifecycleEvent
metadata: {name: karpenter-$node}
spec: {transitionName: $driver$suffix, bindingNode: $node}
EOF
    done
done
