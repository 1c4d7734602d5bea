{{/* What the pods of a component are found by; the component is the second of the list. */}}
{{- define "spoke.selector" -}}
app.kubernetes.io/name: spoke
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "spoke.labels" -}}
{{ include "spoke.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
{{- end }}

{{/* What every pod has: nobody's rights, and nothing to write but its volumes. */}}
{{- define "spoke.pod" -}}
automountServiceAccountToken: false
# Its variables, such as SPOKE_SERVICE_HOST, look like misspelt variables of Spoke.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
imagePullSecrets: {{ toJson .Values.imagePullSecrets }}
nodeSelector: {{ toJson .Values.nodeSelector }}
tolerations: {{ toJson .Values.tolerations }}
affinity: {{ toJson .Values.affinity }}
volumes:
  - name: secrets
    secret:
      secretName: {{ .Values.existingSecret }}
      defaultMode: 0440
  - name: tmp
    emptyDir: {}
  - name: data
    {{- if .Values.originals.existingClaim }}
    persistentVolumeClaim:
      claimName: {{ .Values.originals.existingClaim }}
    {{- else }}
    emptyDir: {}
    {{- end }}
{{- end }}

{{- define "spoke.container" -}}
{{- if .Values.image.digest }}
image: "{{ .Values.image.repository }}@{{ .Values.image.digest }}"
{{- else }}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
{{- end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - { name: secrets, mountPath: /run/secrets/spoke, readOnly: true }
  - { name: tmp, mountPath: /tmp }
  - { name: data, mountPath: /data }
{{- end }}

{{- define "spoke.environment" -}}
{{- range .Values.secretKeys }}
- name: {{ . }}_FILE
  value: /run/secrets/spoke/{{ . }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
