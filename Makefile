# What newcomers and CI run. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Build results are kept outside the clone, so that the next clone builds quickly.
export SCUPPER_CACHE ?= $(if $(filter 0,$(shell id -u)),/var/cache/scupper,$(HOME)/.cache/scupper)
export CARGO_TARGET_DIR ?= $(SCUPPER_CACHE)/target
POLICIES := $(CARGO_TARGET_DIR)/policies
NODE ?= worker-1
DRIVER ?= drain.slm.k8s.io

comma := ,
say = @printf '\n== %s\n' "$(1)"

.PHONY: help
help: ## List the targets.
	@awk -F': .*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-34s %s\n", $$1 ($$1 == "drain" || $$1 == "maintenance-complete" ? " NODE=<node>" : ""), $$2}' $(MAKEFILE_LIST)

# The programs of a demo, in a profile that builds quickly, and the policies that it shows (1); what else it runs (2).
define demo_programs
	$(call say,building scupper (the first time takes some minutes: it includes a WebAssembly runtime))
	cargo build --locked --profile demo -p scupper-dev -p xtask $(addprefix -p ,$(2))
	$(call say,building policies: $(1))
	"$(CARGO_TARGET_DIR)/demo/xtask" policies $(foreach policy,$(1),--policy $(policy)) --out "$(POLICIES)"
endef

.PHONY: demo
demo: tools ## Watch a drain on a simulated cluster. Needs no Kubernetes.
	$(call demo_programs,slurm)
	$(call say,a drain)
	"$(CARGO_TARGET_DIR)/demo/scupper-dev" demo --slurm "$(POLICIES)/slurm.wasm"

.PHONY: demo-stuck
demo-stuck: tools ## Watch three stuck drains and how scupper status explains each.
	$(call demo_programs,slurm)
	$(call say,three stuck drains)
	"$(CARGO_TARGET_DIR)/demo/scupper-dev" demo --stuck --slurm "$(POLICIES)/slurm.wasm"

.PHONY: demo-nvsentinel
demo-nvsentinel: tools ## Drain one GPU, then its node, as NVSentinel requests. Needs no Kubernetes.
	$(call demo_programs,gpu namespace-modes jobs)
	$(call say,two DrainRequests)
	"$(CARGO_TARGET_DIR)/demo/scupper-dev" demo --nvsentinel "$(POLICIES)"

.PHONY: demo-forecast
demo-forecast: tools ## Watch a drain be forecast, carried out and explained. Needs no Kubernetes.
	$(call demo_programs,announce priority,scupper)
	$(call say,a forecast$(comma) two drains and another policy)
	"$(CARGO_TARGET_DIR)/demo/scupper-dev" demo --forecast "$(POLICIES)" --page "$(CARGO_TARGET_DIR)/demo/report.html"

.PHONY: demo-slurm
demo-slurm: tools ## Watch a drain through a real Slurm with real jobs. Needs root, no Kubernetes.
	@host/testbeds/tools slurm
	$(call say,the real Slurm (the first time it is downloaded$(comma) half a minute))
	@host/testbeds/slurm/slurm-testbed fetch
	$(call demo_programs,slurm)
	$(call say,a drain)
	"$(CARGO_TARGET_DIR)/demo/scupper-dev" demo --slurm "$(POLICIES)/slurm.wasm" --slurm-testbed host/testbeds/slurm/slurm-testbed

.PHONY: demo-openstack
demo-openstack: tools ## Watch servers migrate off a compute host of a real Nova. Needs no Kubernetes.
	@host/testbeds/tools openstack
	$(call say,the real OpenStack (the first time it is downloaded$(comma) two minutes))
	@host/testbeds/openstack/openstack-testbed fetch
	$(call demo_programs,openstack)
	$(call say,a drain)
	"$(CARGO_TARGET_DIR)/demo/scupper-dev" demo --openstack "$(POLICIES)/openstack.wasm" --openstack-testbed host/testbeds/openstack/openstack-testbed --openstack-state "$(SCUPPER_CACHE)/testbeds/openstack/state/demo"

.PHONY: plugins
plugins: tools ## Build the policies (slurm.wasm, openstack.wasm, namespace-modes.wasm, jobs.wasm, gpu.wasm, gangs.wasm, priority.wasm).
	$(call say,building the policies)
	cargo xtask policies --out "$(POLICIES)"

.PHONY: test
test: tools ## Lint and run all tests, with the real servers.
	@host/run-tests

.PHONY: check
check: tools ## Format, clippy, unit tests and the engine: what to run while you write.
	@host/run-tests check

.PHONY: test-engine
test-engine: tools ## Test only the engine: tables, purity, 100,000 simulated drains, mutations.
	@host/run-tests engine

.PHONY: test-unit
test-unit: tools ## Test everything except the engine and the real servers.
	@host/run-tests unit waiting rest

.PHONY: test-slm
test-slm: tools ## Test only the SLM scenarios.
	@host/run-tests slm

.PHONY: test-real-apiserver
test-real-apiserver: tools ## Test only on the real API server. Needs root.
	@host/run-tests semantics_real real_apiserver real_deploy

.PHONY: test-real-kubelet
test-real-kubelet: tools ## Test only on the real kubelet.
	@host/run-tests real_kubelet

.PHONY: test-real-slurm
test-real-slurm: tools ## Test only on the real Slurm.
	@host/run-tests real_slurm

.PHONY: test-real-slurm-long
test-real-slurm-long: tools plugins ## Test what takes minutes on the real Slurm: 50,000 jobs.
	@host/testbeds/tools slurm
	@host/testbeds/slurm/slurm-testbed fetch
	SCUPPER_LONG=1 cargo test --locked -p scupper --test real_slurm -- --nocapture long_

.PHONY: test-real-openstack
test-real-openstack: tools ## Test only on the real OpenStack.
	@host/run-tests real_openstack

.PHONY: test-real-openstack-long
test-real-openstack-long: tools plugins ## Test what takes minutes on the real OpenStack: a full host.
	@host/testbeds/tools openstack
	@host/testbeds/openstack/openstack-testbed fetch
	SCUPPER_LONG=1 cargo test --locked -p scupper --test real_openstack -- long_

.PHONY: lint
lint: tools ## Check formatting, house rules, clippy, docs and licences.
	@host/run-tests lint

.PHONY: cache
cache:
	@echo "$(SCUPPER_CACHE)"

.PHONY: tools
tools:
	@host/testbeds/tools rust

PROFILE ?= release
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
IMAGE ?= $(SCUPPER_CACHE)/image/scupper.tar
# Packed relocations: the program is 0.8 MB smaller, and needs glibc 2.36, which the image then brings along.
# Equal functions are kept once, 0.3 MB less, where rustc links with lld.
PACKED = $(shell getconf GNU_LIBC_VERSION | awk '$$2 >= 2.36 {print "-Clink-arg=-Wl,-z,pack-relative-relocs"}')
FOLDED = $(shell rustc -vV | awk '/^host: x86_64-unknown-linux-gnu/ {print "-Clink-arg=-Wl,--icf=all"}')

.PHONY: image
image: tools plugins ## Build the container image, as a file. PROFILE=dev takes a quarter of the time; the image is larger.
	@host/testbeds/tools image
	$(call say,building scupper ($(PROFILE)))
	cargo rustc --locked -p scupper --bin scupper --profile "$(PROFILE)" -- $(PACKED) $(FOLDED)
	$(call say,the image)
	@mkdir -p "$(dir $(IMAGE))"
	@deploy/image "$(POLICIES)" "$(IMAGE)" "localhost/scupper:$(VERSION)" "$(CARGO_TARGET_DIR)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/scupper"

DIST ?= dist
# Both are for krew's manifest and the image's name.
export RELEASE_URL IMAGE_NAME

.PHONY: release
release: tools ## Write programs and images for x86-64 and arm64, policies, chart, SBOM and licences into dist/.
	@host/testbeds/tools image helm release
	@PROFILE="$(PROFILE)" deploy/release "$(DIST)"

# In a profile that builds quickly.
.PHONY: test-release
test-release: tools ## Build dist/ twice, in two clones, compare every byte, and use it as a new user does. Takes long.
	@host/testbeds/tools image helm release release-test
	@deploy/test-release

.PHONY: test-arm64
test-arm64: tools plugins ## Run the arm64 program in an emulator: it loads policies and drains on the simulator.
	@host/testbeds/tools release
	@deploy/test-arm64 "$(POLICIES)"

.PHONY: man
man: tools ## Write a man page for each command into $SCUPPER_CACHE/man.
	cargo run --locked -p scupper -- man "$(SCUPPER_CACHE)/man"

.PHONY: bench
bench: tools plugins ## Measure planning, hooks, loading, reloading, a drain beside kubectl, evictions, memory and the image.
	host/scupper/benches/run

DRAINS ?= 2000

.PHONY: soak
soak: tools plugins ## Run DRAINS=2000 drains with all kinds of faults in one driver: each ends, and memory stays flat.
	$(call say,$(DRAINS) drains in one driver process (10 to 30 minutes))
	SCUPPER_SOAK=$(DRAINS) SCUPPER_POLICIES="$(POLICIES)" cargo test --locked -p scupper --test soak -- --nocapture

.PHONY: drain
drain: ## Drain a node of your cluster (creates a LifecycleEvent).
	@printf 'apiVersion: lifecycle.k8s.io/v1alpha1\nkind: LifecycleEvent\nmetadata: {generateName: drain-$(NODE)-}\nspec: {transitionName: $(DRIVER), bindingNode: $(NODE)}\n' | kubectl create -f -

.PHONY: maintenance-complete
maintenance-complete: ## Return a drained node of your cluster to service.
	@printf 'apiVersion: lifecycle.k8s.io/v1alpha1\nkind: LifecycleEvent\nmetadata: {generateName: uncordon-$(NODE)-}\nspec: {transitionName: $(DRIVER)-uncordon, bindingNode: $(NODE)}\n' | kubectl create -f -
