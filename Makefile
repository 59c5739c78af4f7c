# SPDX-License-Identifier: Apache-2.0
# `make help` lists the commands.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

STACK ?= dev
SITE ?= .lab
ARGS ?=
SIZES ?= 1,6,33

export LAB_SITE := $(abspath $(SITE))
# Pulumi takes four steps at a time for each core, and its steps mostly wait for machines: two cores have time for more.
export PULUMI_PARALLEL ?= 32

# The versions stand in the modules of the tools.
PULUMI_VERSION := $(shell sed -n 's|^\tgithub.com/pulumi/pulumi/pkg/v3 \(v[^ ]*\).*|\1|p' tools/pulumi/go.mod)
KUBERNETES_VERSION := $(shell sed -n 's|^\tk8s.io/kubernetes \(v[^ ]*\).*|\1|p' tools/kubernetes/go.mod)

LAB := bin/lab exec --
TOOLS := bin/pulumi bin/pulumi-language-go bin/lab-kubernetes bin/kubectl bin/lab bin/tpx

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: tools
tools: $(TOOLS) bin/charts bin/program ## build what is missing into bin/

# hack/build.sh stands behind a bar: how a build reports is no reason to build again.
# The Pulumi CLI on PATH serves when it is v3 and not older than the pinned one.
bin/pulumi: tools/pulumi/go.mod hack/find-pulumi.sh | hack/build.sh
	@mkdir -p bin
	@if found=$$(hack/find-pulumi.sh pulumi $(PULUMI_VERSION)); then \
		ln -sf "$$found" $@; echo "pulumi: using $$found"; \
	else \
		hack/build.sh pulumi tools/pulumi $@ github.com/pulumi/pulumi/pkg/v3/cmd/pulumi \
			"-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=$(PULUMI_VERSION) -X github.com/pulumi/pulumi/pkg/v3/version.Version=$(PULUMI_VERSION)"; \
	fi

bin/pulumi-language-go: tools/language-go/go.mod hack/language-go.sh hack/find-pulumi.sh | hack/build.sh
	@mkdir -p bin
	@if found=$$(hack/find-pulumi.sh pulumi-language-go $(PULUMI_VERSION)); then \
		ln -sf "$$found" $@; echo "pulumi-language-go: using $$found"; \
	else \
		hack/build.sh pulumi-language-go tools/language-go bin/libexec/pulumi-language-go github.com/pulumi/pulumi/sdk/v3/go/pulumi-language-go && \
		install -m 755 hack/language-go.sh $@; \
	fi

KUBERNETES_FLAGS := $(foreach p,k8s.io/component-base/version k8s.io/client-go/pkg/version,\
	-X $(p).gitVersion=$(KUBERNETES_VERSION) -X $(p).gitMajor=1 -X $(p).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES_VERSION))) -X $(p).gitTreeState=clean)

# With cgo where the others have it, and with the lab's versions of what both need: what is compiled for one is not for the other.
bin/lab-kubernetes: $(wildcard tools/kubernetes/*.go) tools/kubernetes/go.mod | hack/build.sh
	@hack/build.sh kubernetes tools/kubernetes $@ . "$(KUBERNETES_FLAGS)"

bin/kubectl: bin/lab-kubernetes
	@ln -sf lab-kubernetes $@

LAB_SOURCES := $(shell find lab -name '*.go' -o -name '*.yaml' -path 'lab/*') lab/go.mod
bin/lab: $(LAB_SOURCES) | hack/build.sh
	@hack/build.sh lab lab $@ ./cmd/lab

# The charts that Go modules carry, and a marked stand-in where none does.
CHART_MODULES := github.com/cilium/cilium@v1.18.4 github.com/cilium/cilium@v1.18.0 \
	github.com/fluxcd/source-controller@v1.9.5 github.com/fluxcd/kustomize-controller@v1.9.5 \
	github.com/fluxcd/helm-controller@v1.6.4 github.com/fluxcd/notification-controller@v1.9.3 \
	sigs.k8s.io/gateway-api@v1.2.0 sigs.k8s.io/gateway-api@v1.3.0
bin/charts: $(wildcard lab/charts/*) $(wildcard lab/cmd/lab-charts/*.go)
	@rm -rf $@ && cd lab && go run ./cmd/lab-charts ../$@ $(CHART_MODULES) && touch ../$@

# The genuine controllers of Flux, which only `make e2e` needs: about ten minutes on two cores.
FLUX_CONTROLLERS := source-controller kustomize-controller
bin/flux-controllers: tools/flux/go.mod $(wildcard tools/flux/encrypt/*.go) | hack/build.sh
	@for c in $(FLUX_CONTROLLERS); do hack/build.sh $$c tools/flux $@/$$c github.com/fluxcd/$$c; done
	@hack/build.sh encrypt tools/flux $@/encrypt ./encrypt
	@touch $@

bin/golangci-lint: tools/lint/go.mod | hack/build.sh
	@hack/build.sh golangci-lint tools/lint $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# Compiled here with progress and with no flags, as Pulumi's Go host does it (Pulumi.yaml names the same file): `pulumi up`
# finds it up to date and does not link it again.
PROGRAM_SOURCES := $(shell find main.go compose.go go.mod stack spec components internal -name '*.go' -o -name go.mod 2>/dev/null)
bin/program: $(PROGRAM_SOURCES) | hack/build.sh
	@STRIP= hack/build.sh program . $@ .
	@# Pulumi's Go host asks Go about every module in go.mod, those too that only other systems need.
	@go list -m -json $$(sed -n 's/^\t\([^ ]*\) v.*/\1/p' go.mod) >/dev/null || echo "program: some modules are unknown; pulumi will say so too, and it does no harm"

TPX_SOURCES := $(shell find cmd/tpx stack spec internal -name '*.go' 2>/dev/null) go.mod
bin/tpx: $(TPX_SOURCES)
	@mkdir -p bin && go build -o $@ ./cmd/tpx

.PHONY: up
up: tools ## pulumi up of STACK (dev) in the lab
	@hack/select.sh $(STACK)
	$(LAB) pulumi up --stack $(STACK) --yes $(ARGS)
	@bin/lab status

.PHONY: preview
preview: tools ## pulumi preview of STACK
	@hack/select.sh $(STACK)
	$(LAB) pulumi preview --stack $(STACK) $(ARGS)

.PHONY: refresh
refresh: tools ## pulumi refresh of STACK
	$(LAB) pulumi refresh --stack $(STACK) --yes $(ARGS)

.PHONY: destroy
destroy: tools ## pulumi destroy of STACK
	$(LAB) pulumi destroy --stack $(STACK) --yes $(ARGS)

# These run in the lab for a stack that the lab has, else wherever pulumi is logged in to. A Pulumi CLI on PATH comes
# before the one that was built here.
TPX := PATH="$$PATH:$(CURDIR)/bin" bin/tpx
ON_STACK := PATH="$$PATH:$(CURDIR)/bin" $$(hack/where.sh $(STACK) "$(SITE)") bin/tpx

.PHONY: drift
drift: bin/tpx ## name what was changed by hand on the nodes of STACK; tpx ends with 1 when anything was
	@$(ON_STACK) drift $(STACK) $(ARGS)

.PHONY: adopt
adopt: bin/tpx ## hand the VMs of a cluster that runs already to STACK, whose state does not know them
	@$(ON_STACK) adopt $(STACK) $(ARGS)

.PHONY: stop
stop: ## stop the lab; its site stays on disk
	@if [ -x bin/lab ]; then bin/lab stop; fi

.PHONY: clean
clean: stop ## stop the lab and remove its site
	@rm -rf "$(SITE)"

.PHONY: doctor
doctor: ## say what is there, what is missing, and what to do; what STACK needs too, and LIVE=1 asks its hosts
	@hack/doctor.sh $(TOOLS)
	@if [ -x bin/tpx ]; then $(ON_STACK) doctor $(STACK) $(if $(LIVE),--live) $(ARGS); fi

.PHONY: test
test: tools bin/golangci-lint ## run every test: units, lab, and the real engine in the lab
	@hack/test.sh

.PHONY: test-unit
test-unit: ## run the tests that need no tools
	@go test $$(go list ./... | grep -v /tests) $(ARGS)

.PHONY: charts
charts: bin/tpx ## fill .cache/charts with the stacks' charts, and pin their digests in charts.lock.yaml
	@$(TPX) charts $(ARGS)

.PHONY: check
check: bin/tpx ## check STACK's file by every rule and by Talos's own, without an engine and without a network
	@$(TPX) check $(STACK) $(ARGS)

.PHONY: images
images: bin/tpx ## list every image and URL that STACK will ever pull
	@$(TPX) images $(STACK) $(ARGS)

.PHONY: bench
bench: tools ## measure previews and ups in the lab by number of nodes: SIZES=1,6,33,103; PAGE=yes writes docs/performance.md
	@go run ./tests/bench -sizes $(SIZES) $(if $(PAGE),-rows docs/performance.json -page docs/performance.md -svg docs/pictures/performance.svg) $(ARGS)

.PHONY: session
session: tools ## record a session in the lab: docs/pictures/session.cast and .svg
	@go run ./tests/record docs/pictures/session

.PHONY: bench-unit
bench-unit: ## run the benchmarks of single functions
	@go test -run '^$$' -bench . -benchmem ./stack/... ./internal/... $(ARGS)

.PHONY: generate
generate: ## write the generated files anew
	@go run ./cmd/stackdoc

.PHONY: fmt
fmt: ## format the code
	@gofmt -w $$(git ls-files '*.go')

.PHONY: lint
lint: bin/golangci-lint ## vet the code, check its format and run golangci-lint
	@hack/lint.sh

# Genuine Talos and what it runs, compiled from its modules: about 15 minutes of a processor, once, and 1 GB of Go's cache.
GENUINE := bin/genuine-talos
CONTAINERD := github.com/containerd/containerd/v2/cmd
CNI := github.com/containernetworking/plugins/plugins
TALOS_MODULE := tools/talos/go.mod tools/talos/go.sum | hack/build.sh

$(GENUINE)/machined: $(TALOS_MODULE)
	@CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -tags=tcell_minimal,grpcnotrace" hack/build.sh machined tools/talos $@ \
		github.com/siderolabs/talos/internal/app/machined "-X golang.zx2c4.com/wireguard/ipc.socketDirectory=/system/wireguard-sock"

CONTAINERD_MODULE := tools/containerd/go.mod tools/containerd/go.sum | hack/build.sh
$(GENUINE)/containerd $(GENUINE)/containerd-shim-runc-v2: $(CONTAINERD_MODULE)
	@CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -tags=no_zfs,no_btrfs,no_devmapper,no_tracing" \
		hack/build.sh $(@F) tools/containerd $@ $(CONTAINERD)/$(@F)

$(GENUINE)/bridge $(GENUINE)/loopback: $(CONTAINERD_MODULE)
	@CGO_ENABLED=0 hack/build.sh $(@F) tools/containerd $@ $(CNI)/main/$(@F)
$(GENUINE)/host-local: $(CONTAINERD_MODULE)
	@CGO_ENABLED=0 hack/build.sh $(@F) tools/containerd $@ $(CNI)/ipam/$(@F)

# Compiled as lab-kubernetes is, whose packages it shares; linked so that it needs nothing beside itself in an image.
$(GENUINE)/hyperkube: $(wildcard tools/kubernetes/hyperkube/*.go) tools/kubernetes/go.mod | hack/build.sh
	@hack/build.sh $(@F) tools/kubernetes $@ ./hyperkube "$(KUBERNETES_FLAGS) -linkmode=external -extldflags=-static"

$(GENUINE)/talosctl: $(TALOS_MODULE)
	@CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -tags=grpcnotrace" hack/build.sh talosctl tools/talos $@ github.com/siderolabs/talos/cmd/talosctl

$(GENUINE)/etcd: $(TALOS_MODULE)
	@CGO_ENABLED=0 hack/build.sh etcd tools/talos $@ go.etcd.io/etcd/server/v3

$(GENUINE)/talos-nodes: $(wildcard tools/talos/*.go) $(TALOS_MODULE)
	@CGO_ENABLED=0 hack/build.sh talos-nodes tools/talos $@ .

$(GENUINE)/runc: tools/runc/go.mod tools/runc/go.sum | hack/build.sh
	@CGO_ENABLED=1 GOFLAGS="$$GOFLAGS -tags=netgo,osusergo,urfave_cli_no_docs" hack/build.sh runc tools/runc $@ \
		github.com/opencontainers/runc "-linkmode=external -extldflags=-static"

GENUINE_TALOS := $(addprefix $(GENUINE)/,machined containerd containerd-shim-runc-v2 etcd talos-nodes runc talosctl \
	hyperkube bridge loopback host-local)
ASK_GENUINE_TALOS := cd lab && go test -count=1 -timeout 20m ./talos -v -run '^TestAnswersOfTalos$$' -genuine "$(CURDIR)/$(GENUINE)"

.PHONY: genuine-talos
genuine-talos: ## as root: run genuine Talos in namespaces, ask it and the lab the same, print what differs (docs/lab.md)
	@hack/genuine-talos.sh
	@$(MAKE) -s --no-print-directory $(GENUINE_TALOS)
	@$(ASK_GENUINE_TALOS) $(ARGS)

.PHONY: reliability
reliability: tools ## meet every fault, record what came of it, and write docs/reliability.md
	@E2E=full RELIABILITY=record go test -count=1 -timeout 150m -v -run '^TestFaults' ./tests $(ARGS)
	@RELIABILITY=record go test -count=1 -run '^TestReliabilityPage$$' ./tests

SEED ?= 1,2,3
STEPS ?= 12
.PHONY: chaos
chaos: tools ## string edits, kills, faults and work by hand together: SEED=1,2 STEPS=20, or SCRIPT=FILE; SHRINK=1 shortens a failure
	@CHAOS_SEED=$(SEED) CHAOS_STEPS=$(STEPS) CHAOS_SCRIPT=$(if $(SCRIPT),$(abspath $(SCRIPT))) CHAOS_SHRINK=$(SHRINK) \
		go test -count=1 -timeout 10h -v -run '^TestChaos$$' ./tests/chaos $(ARGS)

.PHONY: baseline
baseline: up ## keep the state of the stack dev, which later versions must preview empty: NAME=2026-11-22-dev
	@$(LAB) pulumi stack export --stack dev | gzip -9n > tests/testdata/baselines/$(NAME).json.gz

.PHONY: record
record: tools ## keep what the genuine plugins in $$PULUMI_HOME do, for the lab's tests to compare with
	@cd lab && go test -count=1 -timeout 20m ./standin -run IsLikeThePlugin -record $(ARGS)

.PHONY: record-talos
record-talos: ## as root: keep what genuine Talos answers, for the lab's tests to compare with
	@$(MAKE) --no-print-directory genuine-talos ARGS="-record $(ARGS)"

.PHONY: e2e
e2e: tools bin/flux-controllers ## run the real engine's tests, those that take minutes too
	@E2E=full go test -count=1 -timeout 150m -v ./tests/... $(ARGS)
