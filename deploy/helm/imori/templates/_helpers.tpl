{{- define "imori.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "imori.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "imori.labels" -}}
{{ include "imori.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The name of a listener's port, which Kubernetes limits to 15 characters. */}}
{{- define "imori.portName" -}}
{{- . | replace "nats_monitor" "monitor" | replace "_" "-" -}}
{{- end -}}

{{/* The listener that answers probes: the name of its port and its scheme. */}}
{{- define "imori.probePort" -}}
{{- if .Values.listeners.admin -}}
port: admin
scheme: HTTP
{{- else if .Values.listeners.admin_tls -}}
port: admin-tls
scheme: HTTPS
{{- else -}}
{{- fail "listeners.admin and listeners.admin_tls are both 0; the probes need one of them" -}}
{{- end -}}
{{- end -}}

{{- define "imori.adminSecret" -}}
{{- .Values.admin.existingSecret | default (printf "%s-admin" (include "imori.name" .)) -}}
{{- end -}}

{{/*
The configuration as TOML. A value in JSON is one in TOML too, and unlike `toToml` it writes a whole number of the values
without a fraction.
*/}}
{{- define "imori.config" -}}
{{- $plain := list -}}
{{- $listeners := dict -}}
{{- $tls := dict -}}
{{- range $name, $port := .Values.listeners -}}
{{- $addresses := list -}}
{{- if $port -}}
{{- $addresses = list (printf "0.0.0.0:%d" (int $port)) (printf "[::]:%d" (int $port)) -}}
{{- if not (hasSuffix "_tls" $name) -}}
{{- $plain = append $plain ($name | replace "_" "-") -}}
{{- else if not $.Values.tls.existingSecret -}}
{{- fail (printf "listeners.%s needs tls.existingSecret" $name) -}}
{{- else if hasPrefix "nats_monitor" $name -}}
{{- $plain = append $plain ($name | replace "_" "-") -}}
{{- end -}}
{{- end -}}
{{- $_ := set $listeners $name $addresses -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $tls = dict "certificate" "/etc/imori-tls/tls.crt" "key" "/etc/imori-tls/tls.key" -}}
{{- end -}}
{{- $broker := dict "data_dir" "/var/lib/imori/data" "accept_plaintext" $plain -}}
{{- $users := dict "admin_password_file" (printf "/etc/imori-admin/%s" .Values.admin.key) -}}
{{- $made := dict "broker" $broker "listeners" $listeners "tls" $tls "users" $users -}}
{{- range $section, $keys := mustMergeOverwrite $made (deepCopy .Values.config) }}
{{- if $keys }}
[{{ $section }}]
{{- range $key, $value := $keys }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{ end }}
{{- end }}
{{- end -}}
