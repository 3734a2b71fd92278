{{/* A file of deploy/, with the account in the release's namespace and the kinds in the group that is served. */}}
{{- define "scupper.file" -}}
{{- $text := .context.Files.Get .file -}}
{{- $text = replace "namespace: scupper," (printf "namespace: %s," .context.Release.Namespace) $text -}}
{{- $text = replace "namespace: scupper}" (printf "namespace: %s}" .context.Release.Namespace) $text -}}
{{- $text = replace "system:serviceaccount:scupper:" (printf "system:serviceaccount:%s:" .context.Release.Namespace) $text -}}
{{- replace "apiGroups: [lifecycle.k8s.io]" (printf "apiGroups: [%s]" .context.Values.lifecycleGroup) $text -}}
{{- end -}}
