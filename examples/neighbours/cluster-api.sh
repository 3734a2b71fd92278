#!/bin/sh
# Has Scupper's driver drain the node of each Machine that is being deleted, before Cluster API does. Cluster API waits for
# that on a Machine with the annotation pre-drain.delete.hook.machine.cluster.x-k8s.io/scupper: scupper
#
# KUBECONFIG: of the management cluster; it needs to list and patch machines.cluster.x-k8s.io.
# WORKLOAD: of the cluster with the nodes, if that is another one; it needs to get nodes, and to get, create and patch
# lifecycleevents.lifecycle.k8s.io.
# GROUP: lifecycle.scupper.dev with the overlay own-group. SCOPE: node for drivers with --scope node.
set -eu
driver=${DRIVER:-drain.slm.k8s.io}
group=${GROUP:-lifecycle.k8s.io}
hook=pre-drain.delete.hook.machine.cluster.x-k8s.io/scupper
held="{.metadata.annotations.$(echo "$hook" | sed 's/\./\\./g')}"
machines="{range .items[?(@.metadata.deletionTimestamp)]}{.metadata.namespace} {.metadata.name} held:$held"
machines="$machines {.status.nodeRef.name}{'\n'}{end}"
workload() { kubectl ${WORKLOAD:+--kubeconfig="$WORKLOAD"} "$@"; }

while sleep "${EVERY:-5}"; do
    kubectl get machines.cluster.x-k8s.io --all-namespaces -o jsonpath="$machines" |
        while read -r namespace machine held node; do
            [ "$held" != held: ] && [ -n "$node" ] || continue
            state='exists {.status.conditions[?(@.type=="Ready")].status}'
            state="$state {range .status.conditions[?(@.type==\"Drained\")]}{.status} {.message}{end}"
            state=$(workload get node "$node" --ignore-not-found -o jsonpath="$state") || continue
            case $state in
            # Drained for this event: an earlier drain may have been of some pods only. Where the kubelet is silent, no driver
            # drains it any more.
            "" | "exists True True drain machine-$node:"* | "exists False True "* | "exists Unknown True "*)
                kubectl annotate machines.cluster.x-k8s.io --namespace "$namespace" "$machine" "$hook-" || continue
                ;;
            *)
                [ "${SCOPE:-}" = node ] && suffix=.$node || suffix=
                # Changes nothing while that drain runs. One that has failed begins again.
                workload apply -f - <<EOF || continue
apiVersion: $group/v1alpha1
kind: LifecycleEvent
metadata: {name: machine-$node}
spec: {transitionName: $driver$suffix, bindingNode: $node}
EOF
                ;;
            esac
        done
done
