// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package keys_test

// dayCases are the keys of the pod network, of the manifests at day 0 and of GitOps whose effect
// their type does not say how to show.
var dayCases = map[string]keyCase{
	"cni.name":                                 {value: "none", given: "lifecycle: {skipKubernetesChecks: true}"},
	"cni.cilium.install":                       {given: cilium, refused: "testdata/charts is a path in the project, which the install Job cannot read"},
	"cni.cilium.chart.repository":              {value: "testdata", without: "testdata/charts", given: cilium, refused: "there is no chart at"},
	"cni.cilium.chart.name":                    {value: "other", given: cilium},
	"cni.cilium.chart.version":                 {value: "1.18.5", given: cilium, refused: "chart cilium has version 1.18.4, not 1.18.5"},
	"cni.cilium.chart.digest":                  {shown: showDigest},
	"cni.cilium.chart.values":                  {value: "{one: 1}", given: cilium},
	"cni.cilium.chart.username":                {shown: showCredentials},
	"cni.cilium.chart.password":                {shown: showCredentials},
	"cni.cilium.cliImage":                      {value: "example.com/cli:v1", given: "cni: {name: cilium, cilium: {install: job, chart: {version: 1.18.4}}}"},
	"cni.cilium.kubeProxyReplacement":          {given: cilium},
	"cni.cilium.l2.interfaces":                 {value: "[^eth0$]", given: cilium},
	"cni.cilium.l2.loadBalancerIPs":            {given: announcing + "\n---\ncni: {cilium: {l2: {externalIPs: true}}}"},
	"cni.cilium.l2.externalIPs":                {given: announcing},
	"cni.cilium.l2.excludeControlPlanes":       {given: announcing},
	"cni.cilium.pools.*.start":                 {value: "10.9.0.1", without: "10.9.0.2", given: cilium + "\n---\ncni: {cilium: {pools: {workers: {stop: 10.9.0.9}}}}"},
	"cni.cilium.pools.*.stop":                  {value: "10.9.0.8", without: "10.9.0.9", given: pooled},
	"cni.cilium.pools.*.cidr":                  {value: "10.9.0.0/24", given: cilium},
	"cni.cilium.bgp.localAsn":                  {value: "65001", without: "65002", given: peered},
	"cni.cilium.bgp.peers.*.address":           {value: "10.0.0.3", without: "10.0.0.2", given: peered},
	"cni.cilium.bgp.peers.*.asn":               {value: "65001", without: "65002", given: peered},
	"cni.cilium.bgp.peers.*.password":          {given: peered},
	"cni.cilium.gatewayApi.version":            {value: "v1.2.0", given: cilium},
	"cni.cilium.gatewayApi.crds":               {value: "['https://example.com/crds.yaml']", given: cilium},
	"cni.cilium.gatewayApi.apiServer.hostname": {value: "a.example.com", without: "b.example.com", given: announcing},
	"cni.cilium.gatewayApi.apiServer.address":  {value: "10.9.0.1", given: fronted},
	"cni.cilium.gatewayApi.apiServer.port":     {value: "7443", given: fronted},
	"cni.cilium.hubble":                        {given: cilium},
	"cni.cilium.defaultDeny":                   {given: cilium},

	"manifests.inline.*.order":           {value: "300", given: "manifests: {inline: {one: {file: testdata/manifest.yaml}, two: {order: 200, inline: {apiVersion: v1, kind: Namespace, metadata: {name: two}}}}}"},
	"manifests.inline.*.inline":          {value: namespace},
	"manifests.inline.*.file":            {value: "testdata/manifest.yaml"},
	"manifests.charts.*.repository":      {value: "testdata", without: "testdata/charts", given: "manifests: {charts: {one: {name: cilium}}}", refused: "there is no chart at"},
	"manifests.charts.*.name":            {value: "other", without: "cilium", given: "manifests: {charts: {one: {repository: testdata/charts}}}"},
	"manifests.charts.*.version":         {value: "1.18.5", given: charted, refused: "chart cilium has version 1.18.4, not 1.18.5"},
	"manifests.charts.*.digest":          {shown: showDigest},
	"manifests.charts.*.values":          {value: "{one: 1}", given: charted},
	"manifests.charts.*.username":        {shown: showCredentials},
	"manifests.charts.*.password":        {shown: showCredentials},
	"manifests.charts.*.namespace":       {given: charted},
	"manifests.charts.*.createNamespace": {given: "manifests: {charts: {one: {repository: testdata/charts, name: cilium, namespace: one}}}"},
	"manifests.charts.*.order":           {value: "50", given: "manifests: {charts: {one: {repository: testdata/charts, name: cilium}}, inline: {two: {file: testdata/manifest.yaml}}}"},
	"manifests.extra":                    {value: "['https://example.com/a.yaml']"},
	"manifests.coreDns.corefile":         {value: "'.:53 { kubernetes cluster.local }'"},
	"manifests.extraHeaders":             {value: "{word: a-secret}", given: "manifests: {extra: ['https://example.com/a.yaml']}"},

	"gitops.provider":                          {value: "flux", without: "none", given: "gitops: {chart: {version: 2.18.2}, git: {url: 'https://git.example.com/a/b.git'}}", refused: "gitops.provider"},
	"gitops.method":                            {value: "operator", given: flux},
	"gitops.namespace":                         {given: flux},
	"gitops.chart.repository":                  {value: "https://charts.example.com", given: flux},
	"gitops.chart.name":                        {given: flux + "\n---\ngitops:\n  chart: {repository: 'https://charts.example.com'}"},
	"gitops.chart.version":                     {value: "2.18.3", given: flux},
	"gitops.chart.digest":                      {value: "sha256:0000000000000000000000000000000000000000000000000000000000000000", given: flux, refused: "digest"},
	"gitops.chart.values":                      {value: "{one: 1}", given: flux},
	"gitops.chart.username":                    {shown: showCredentials},
	"gitops.chart.password":                    {shown: showCredentials},
	"gitops.version":                           {value: "2.7.2", given: flux + "\n---\ngitops:\n  method: operator"},
	"gitops.registry":                          {value: "harbor.example.com/flux", given: flux},
	"gitops.components":                        {value: "[source-controller, kustomize-controller]", given: flux},
	"gitops.git.url":                           {value: "https://git.example.com/c/d.git", given: flux},
	"gitops.git.branch":                        {given: flux},
	"gitops.git.tag":                           {given: flux},
	"gitops.git.semver":                        {value: "'>=1.0.0'", given: flux},
	"gitops.git.commit":                        {value: "abcdef0123456789abcdef0123456789abcdef01", given: flux},
	"gitops.git.path":                          {given: flux},
	"gitops.git.interval":                      {given: flux},
	"gitops.git.syncInterval":                  {given: flux},
	"gitops.git.timeout":                       {given: flux},
	"gitops.git.prune":                         {given: flux},
	"gitops.git.wait":                          {given: flux},
	"gitops.git.auth.type":                     {value: "token", given: sshFlux, refused: "gitops.git.auth.type"},
	"gitops.git.auth.privateKey":               {value: "'@SSHKEY'", given: sshFlux},
	"gitops.git.auth.knownHosts":               {value: knownHost + " one", given: sshFlux},
	"gitops.git.auth.username":                 {given: flux + "\n---\ngitops:\n  git: {auth: {type: token, password: secret}}"},
	"gitops.git.auth.password":                 {without: "other-secret", given: flux + "\n---\ngitops:\n  git: {auth: {type: token}}"},
	"gitops.git.auth.ca":                       {value: "'@CERT'", given: flux + "\n---\ngitops:\n  git: {auth: {type: token, password: secret}}"},
	"gitops.git.auth.githubApp.id":             {value: "'1'", without: "'2'", given: flux + "\n---\ngitops:\n  git: {auth: {type: githubApp, githubApp: {installationId: '3', privateKey: '@SSHKEY'}}}"},
	"gitops.git.auth.githubApp.installationId": {value: "'1'", without: "'2'", given: flux + "\n---\ngitops:\n  git: {auth: {type: githubApp, githubApp: {id: '3', privateKey: '@SSHKEY'}}}"},
	"gitops.git.auth.githubApp.privateKey":     {value: "'@SSHKEY'", without: "'@OTHERKEY'", given: flux + "\n---\ngitops:\n  git: {auth: {type: githubApp, githubApp: {id: '3', installationId: '1'}}}"},
	"gitops.git.auth.githubApp.baseUrl":        {value: "https://api.example.com", given: flux + "\n---\ngitops:\n  git: {auth: {type: githubApp, githubApp: {id: '3', installationId: '1', privateKey: '@SSHKEY'}}}"},
	"gitops.git.auth.register.kind":            {value: "forgejo", without: "github", given: registered},
	"gitops.git.auth.register.url":             {value: "https://api.example.com/v1", given: registered},
	"gitops.git.auth.register.token":           {without: "other-secret", given: registered},
	"gitops.await":                             {given: flux},
	"gitops.installTimeout":                    {given: flux},
	"gitops.destinationNamespace":              {given: flux},
	"gitops.sops.ageKey":                       {value: "'@AGE'", given: flux + "\n---\ngitops:\n  sops: {}"},
	"gitops.sops.secretName":                   {given: flux},
	"gitops.dayZero":                           {given: flux, refused: "gitops.dayZero: is a choice of Argo CD"},
}

const (
	cilium     = "cni:\n  name: cilium\n  cilium: {chart: {repository: testdata/charts, version: 1.18.4}}"
	announcing = "cni: {name: cilium, cilium: {l2: {}, pools: {one: {start: 10.0.0.200, stop: 10.0.0.220}}, chart: {repository: testdata/charts, version: 1.18.4}}}"
	fronted    = "cni: {name: cilium, cilium: {l2: {}, gatewayApi: {apiServer: {hostname: a.example.com}}, chart: {repository: testdata/charts, version: 1.18.4}}}"
	pooled     = "cni: {name: cilium, cilium: {pools: {workers: {start: 10.9.0.1}}, chart: {repository: testdata/charts, version: 1.18.4}}}"
	peered     = "cni: {name: cilium, cilium: {bgp: {localAsn: 65000, peers: {one: {address: 10.0.0.1, asn: 65000}}}, chart: {repository: testdata/charts, version: 1.18.4}}}"
	charted    = "manifests: {charts: {one: {repository: testdata/charts, name: cilium}}}"
	namespace  = "{apiVersion: v1, kind: Namespace, metadata: {name: one}}"
	knownHost  = "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBKbi6TI+As1UypzxqMHv/Exy7MuzNFJ5OZqVnvwn8bl"
	flux       = "gitops:\n  provider: flux\n  chart: {version: 2.18.2}\n  git: {url: 'https://git.example.com/a/b.git'}"
	registered = sshFlux + "\n---\ngitops: {git: {auth: {register: {kind: gitea, token: a-secret}}}}"
	sshFlux    = "gitops: {provider: flux, chart: {version: 2.18.2}, git: {url: 'ssh://git@git.example.com/a/b.git', auth: {type: ssh, knownHosts: '" + knownHost + "'}}}"
)
