{{/* A file of deploy/, with the account in the release's namespace, the kinds in the group that is served, and the bounds
of the account as scupper.yaml says: its drain.sla, its drain.grace-period, and the annotations of nodes and pods that
policies are granted. */}}
{{- define "scupper.file" -}}
{{- $config := .context.Values.config | default (.context.Files.Get "files/scupper.yaml") | fromYaml -}}
{{- $limit := dig "drain" "sla" "0" $config | toString -}}
{{- if regexMatch "^0[a-z]*$" $limit }}{{ $limit = "" }}{{ end -}}
{{- $prefixes := list "scupper.dev/" -}}
{{- $ofPods := list -}}
{{- range $config.policies -}}
{{- range dig "grants" "node-annotations" list . }}{{ $prefixes = append $prefixes . }}{{ end -}}
{{- range dig "grants" "pod-annotations" list . }}{{ $ofPods = append $ofPods . }}{{ end -}}
{{- end -}}
{{- $shortest := ternary "0" "1" (or (eq (dig "drain" "grace-period" "" $config | toString) "0") (has "--grace-period=0" .context.Values.args)) -}}
{{- $text := .context.Files.Get .file -}}
{{- $text = replace "namespace: scupper," (printf "namespace: %s," .context.Release.Namespace) $text -}}
{{- $text = replace "namespace: scupper}" (printf "namespace: %s}" .context.Release.Namespace) $text -}}
{{- $text = replace "system:serviceaccount:scupper:" (printf "system:serviceaccount:%s:" .context.Release.Namespace) $text -}}
{{- $text = replace "{name: limit, expression: \"''\"}" (printf "{name: limit, expression: \"'%s'\"}" $limit) $text -}}
{{- $text = replace "['scupper.dev/']" (printf "['%s']" ($prefixes | uniq | join "', '")) $text -}}
{{- if $ofPods }}{{ $text = replace "{name: prefixes, expression: \"[]\"}" (printf "{name: prefixes, expression: \"['%s']\"}" ($ofPods | uniq | join "', '")) $text }}{{ end -}}
{{- $text = replace "{name: shortest, expression: \"1\"}" (printf "{name: shortest, expression: \"%s\"}" $shortest) $text -}}
{{- if eq .context.Values.evictions "node" -}}
{{- $direct := "resources: [pods/eviction], verbs: [create]}" -}}
{{- $text = replace $direct "resources: [pods/eviction], verbs: [\"impersonate-on:associated-node:create\"]}" $text -}}
{{- $last := "resources: [lifecycleevents], verbs: [list, watch]}\n" -}}
{{- $text = replace $last (printf "%s  - {apiGroups: [authentication.k8s.io], resources: [nodes], verbs: [\"impersonate:associated-node\"]}\n" $last) $text -}}
{{- end -}}
{{- replace "apiGroups: [lifecycle.k8s.io]" (printf "apiGroups: [%s]" .context.Values.lifecycleGroup) $text -}}
{{- end -}}
