{{- define "workload" }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
---
apiVersion: apps/v1
kind: {{ .kind | default "Deployment" }}
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels: {app.kubernetes.io/name: {{ .name }}}
spec:
  replicas: {{ .replicas | default 1 }}
  {{- if eq (.kind | default "Deployment") "StatefulSet" }}
  serviceName: {{ .name }}
  {{- end }}
  selector:
    matchLabels: {app.kubernetes.io/name: {{ .name }}}
  template:
    metadata:
      labels: {app.kubernetes.io/name: {{ .name }}}
    spec:
      serviceAccountName: {{ .name }}
      containers:
        - name: {{ .name }}
          image: {{ .image }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            runAsNonRoot: true
            capabilities: {drop: [ALL]}
            seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "kind" }}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {{ .plural }}.{{ .group }}
  annotations: {helm.sh/resource-policy: keep}
spec:
  group: {{ .group }}
  scope: {{ .scope | default "Namespaced" }}
  names: {kind: {{ .kind }}, listKind: {{ .kind }}List, plural: {{ .plural }}, singular: {{ lower .kind }}}
  versions:
    - name: {{ .version }}
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
{{- end }}
