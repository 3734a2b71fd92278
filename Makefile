# Everything a newcomer and CI need. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Build results are kept outside of the clone, so that the next clone is quick.
export SCUPPER_CACHE ?= $(if $(filter 0,$(shell id -u)),/var/cache/scupper,$(HOME)/.cache/scupper)
export CARGO_TARGET_DIR ?= $(SCUPPER_CACHE)/target
POLICIES := $(CARGO_TARGET_DIR)/policies
NODE ?= worker-1
DRIVER ?= drain.slm.k8s.io

say = @printf '\n== %s\n' "$(1)"

.PHONY: help
help: ## This list.
	@awk -F': .*## ' '/^[a-z-]+:.*## / {printf "  make %-34s %s\n", $$1 ($$1 == "drain" || $$1 == "maintenance-complete" ? " NODE=<node>" : ""), $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: tools plugins ## Watch a drain on a simulated cluster. Needs no Kubernetes.
	$(call say,building scupper (the first time takes some minutes: it brings a WebAssembly runtime))
	cargo build --locked -p scupper
	$(call say,a drain)
	"$(CARGO_TARGET_DIR)/debug/scupper" demo --slurm "$(POLICIES)/slurm.wasm"

.PHONY: plugins
plugins: tools ## Build the policies (slurm.wasm, priority.wasm).
	$(call say,building the policies)
	cargo xtask policies --out "$(POLICIES)"

.PHONY: test
test: lint test-engine test-unit test-semantics test-kubelet bench-check ## All tests, the real API server and kubelet included.
	$(call say,all tests passed)

.PHONY: test-engine
test-engine: tools ## The engine: tables, purity, 100,000 simulated drains, mutations.
	$(call say,the engine: tables, purity, simulation, mutations)
	cargo test --locked -p scupper-engine -p scupper-engine-simulation

.PHONY: test-unit
test-unit: tools plugins ## Everything else that needs no real server: edges, policies, SLM, the binary.
	$(call say,edges, policies, SLM and the binary)
	cargo test --locked --workspace --exclude scupper-engine --exclude scupper-engine-simulation

.PHONY: lint
lint: tools ## Formatting, clippy, docs, house rules, licences.
	$(call say,formatting)
	cargo fmt --all --check
	$(call say,house rules)
	cargo xtask tidy
	$(call say,clippy)
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(call say,docs)
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet
	$(call say,licences and sources of all dependencies)
	@host/testbeds/tools deny
	"$(SCUPPER_CACHE)/tools/bin/cargo-deny" --log-level error --config .cargo/deny.toml check bans licenses sources

.PHONY: tools
tools:
	@host/testbeds/tools rust

.PHONY: bench
bench: tools plugins ## Figures: planning, hooks, loading, a drain beside kubectl, memory.
	host/benches/run

.PHONY: drain
drain: ## Ask for a drain of a node of your cluster.
	@printf 'apiVersion: lifecycle.k8s.io/v1alpha1\nkind: LifecycleEvent\nmetadata: {generateName: drain-$(NODE)-}\nspec: {transitionName: $(DRIVER), bindingNode: $(NODE)}\n' | kubectl create -f -

.PHONY: maintenance-complete
maintenance-complete: ## Give a drained node of your cluster back.
	@printf 'apiVersion: lifecycle.k8s.io/v1alpha1\nkind: LifecycleEvent\nmetadata: {generateName: uncordon-$(NODE)-}\nspec: {transitionName: $(DRIVER)-uncordon, bindingNode: $(NODE)}\n' | kubectl create -f -
