{{- /* Arguments of the first two: a list of the root context and the component. */ -}}

{{- define "gatehouse.name" -}}
{{ (index . 0).Release.Name }}-{{ index . 1 }}
{{- end }}

{{- define "gatehouse.labels" -}}
{ app.kubernetes.io/name: gatehouse, app.kubernetes.io/instance: {{ (index . 0).Release.Name }}, app.kubernetes.io/component: {{ index . 1 }} }
{{- end }}

{{- define "gatehouse.image" -}}
{{- $image := (index . 0).Values.image -}}
{{ $image.prefix }}gatehouse-{{ index . 1 }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- end }}

{{- /* Settings as the data of a ConfigMap, whose values are strings. Helm reads the numbers of a values file as floats. */ -}}
{{- define "gatehouse.settings" -}}
{{- range $name, $value := . }}
{{- $isWhole := and (kindIs "float64" $value) (eq (float64 $value) (floor $value)) }}
{{ $name }}: {{ ternary (printf "%.0f" (float64 $value)) (toString $value) $isWhole | quote }}
{{- end }}
{{- end }}

{{- define "gatehouse.gatewaySettings" -}}
{{- $settings := dict "PUBLIC_URL" (printf "https://%s" .Values.hosts.app) }}
{{- with .Values.gateway.oidc }}{{ if .issuer }}
{{- $_ := set $settings "OIDC_ISSUER" .issuer }}
{{- $_ := set $settings "OIDC_CLIENT_ID" (required "gateway.oidc.clientId is required with gateway.oidc.issuer" .clientId) }}
{{- $_ := set $settings "OIDC_CLIENT_SECRET_FILE" "/run/secrets/gatehouse/oidc_client_secret" }}
{{- $_ := set $settings "SESSION_SECRET_FILE" "/run/secrets/gatehouse/session_secret" }}
{{- $_ := set $settings "EXCHANGE_SECRET_FILE" "/run/secrets/gatehouse/exchange_secret" }}
{{- end }}{{ end }}
{{- if .Values.gateway.web.image }}{{ $_ := set $settings "WEB_ROOT" "/web" }}{{ end }}
{{- if .Values.gateway.routes }}
{{- if .Values.gateway.settings.GATEWAY_ROUTES }}{{ fail "gateway.routes and gateway.settings.GATEWAY_ROUTES must not both be set" }}{{ end }}
{{- $_ := set $settings "GATEWAY_ROUTES" "/etc/gatehouse/routes.yaml" }}
{{- end }}
{{- range $value, $setting := dict "upstreams" "GATEWAY_UPSTREAMS" "limits" "GATEWAY_LIMITS" "providers" "OIDC_PROVIDERS" }}
{{- if get $.Values.gateway $value }}
{{- if get $.Values.gateway.settings $setting }}{{ fail (printf "gateway.%s and gateway.settings.%s must not both be set" $value $setting) }}{{ end }}
{{- $_ := set $settings $setting (printf "/etc/gatehouse-files/%s.yaml" $value) }}
{{- end }}
{{- end }}
{{- if .Values.gateway.providers }}
{{- $_ := set $settings "SESSION_SECRET_FILE" "/run/secrets/gatehouse/session_secret" }}
{{- $_ := set $settings "EXCHANGE_SECRET_FILE" "/run/secrets/gatehouse/exchange_secret" }}
{{- end }}
{{- with .Values.gateway.internalApi }}{{ if .enabled }}
{{- $_ := set $settings "GATEWAY_INTERNAL_HOST" "0.0.0.0" }}
{{- $_ := set $settings "GATEWAY_INTERNAL_PORT" "3001" }}
{{- $_ := set $settings "GATEWAY_INTERNAL_KEY_FILE" "/run/secrets/gatehouse/internal_key" }}
{{- if .informRelay }}
{{- $_ := set $settings "RELAY_API_URL" (printf "http://%s:8100/api" (include "gatehouse.name" (list $ "relay"))) }}
{{- $_ := set $settings "REALTIME_API_KEY_FILE" "/run/secrets/gatehouse/api_key" }}
{{- end }}
{{- else if .informRelay }}{{ fail "gateway.internalApi.informRelay needs gateway.internalApi.enabled" }}
{{- end }}{{ end }}
{{- $_ := required "gateway.settings.BACKEND_URL is required" .Values.gateway.settings.BACKEND_URL }}
{{- include "gatehouse.settings" (merge (dict) .Values.gateway.settings $settings) }}
{{- end }}

{{- /* The files of the gateway as the data of a ConfigMap, or nothing. */ -}}
{{- define "gatehouse.gatewayFiles" -}}
{{- $files := dict }}
{{- range $name := list "upstreams" "limits" "providers" }}
{{- with get $.Values.gateway $name }}{{ $_ := set $files (printf "%s.yaml" $name) (toYaml .) }}{{ end }}
{{- end }}
{{- with merge $files .Values.gateway.documents }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "gatehouse.relaySettings" -}}
{{- $settings := dict "RELAY_ALLOWED_ORIGINS" (printf "https://%s" .Values.hosts.app) "RELAY_CONFIG" "/etc/gatehouse/relay.json" }}
{{- include "gatehouse.settings" (merge (dict) .Values.relay.settings $settings) }}
{{- end }}

{{- /* The annotations of the pods. Argument: a list of the root context, the values of the program, and its configuration. */ -}}
{{- define "gatehouse.podAnnotations" -}}
{{- $checksum := dict "checksum/settings" (sha256sum (index . 2)) }}
{{- with merge (dict) (index . 1).podAnnotations (ternary $checksum (dict) (index . 0).Values.restartOnChange) }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* Whole seconds of SHUTDOWN_DELAY_MS. Argument: the settings of a program. */ -}}
{{- define "gatehouse.shutdownDelay" -}}
{{ div (int .SHUTDOWN_DELAY_MS) 1000 }}
{{- end }}

{{- /* Egress rules for the ports of URLs, to any address. Argument: URLs by their comment; empty ones need no rule. */ -}}
{{- define "gatehouse.egressTo" -}}
{{- range $comment, $address := . }}
{{- with $address }}
{{- $url := urlParse . }}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) }}
# {{ $comment }}
- ports:
    - port: {{ $port }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The address of the OpenTelemetry collector, or nothing. Argument: the settings of a program. */ -}}
{{- define "gatehouse.collector" -}}
{{ coalesce .OTEL_EXPORTER_OTLP_TRACES_ENDPOINT .OTEL_EXPORTER_OTLP_ENDPOINT | default "" }}
{{- end }}

{{- /* The paths of the relay that browsers use. */ -}}
{{- define "gatehouse.clientPaths" -}}
[/connection/websocket, /connection/http_stream, /connection/sse, /connection/uni_websocket, /connection/uni_http_stream, /connection/uni_sse, /emulation]
{{- end }}
