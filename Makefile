# Everything that is done with this repository. `make` lists it.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# One build mode for all but -race, so that etcd and gRPC compile once.
export CGO_ENABLED := 0

CODE_ID  = $(shell cd tools && go run ./codeid ..)
LDFLAGS  = -X github.com/weirflow/weir/daemon.codeID=$(CODE_ID)
MODULES  = $(patsubst %/go.mod,%,$(wildcard examples/*/go.mod))
TOOL     = go tool -modfile=tools/go.mod
REPORT   = build/report
TAGS     = invariants

# What is too heavy for -race: real processes, embedded etcd, and what tests no code of ours.
NO_RACE  = /(cmd|bench|daemon|cli|jobs|proto|tools)(/|$$)|/internal/(tidy|deploytest)$$|/jobmanager/ha/etcd

# How much: seeds of the simulator, rounds of kills of real processes. Tests read these.
SEED        ?=
N           ?= 1000
CHECK_SEEDS ?= 200
SOAK_SEEDS  ?= 5000
FUZZ_TIME   ?= 60s

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## bin/weir, static, and bin/jobmanager and bin/taskmanager as links to it
	@mkdir -p bin
	go build -ldflags "$(LDFLAGS)" -o bin/weir ./cmd/weir
	ln -sf weir bin/jobmanager
	ln -sf weir bin/taskmanager

.PHONY: demo
demo: build ## real processes, checkpoints with and without back pressure, a table
	bin/weir demo

.PHONY: test
test: ## all tests; needs Go only
	go test ./...
	@for m in $(MODULES); do echo "cd $$m && go test ./..."; (cd $$m && go test ./...); done

.PHONY: check
check: static $(REPORT) ## what CI runs: fmt, vet, staticcheck, sumtype, tidy, all tests with invariants, race, seeds, planted bugs, kills
	$(REPORT) $(foreach m,$(MODULES),go test -C $(m) -json ./... --) \
		go test -C tools -json ./... -- \
		CGO_ENABLED=1 WEIR_SEEDS=10 go test -json -race -tags $(TAGS) -timeout 10m $$(go list ./... | grep -vE '$(NO_RACE)') -- \
		WEIR_SEEDS=$(CHECK_SEEDS) go test -json -tags '$(TAGS) planted' -timeout 20m -run TestPlanted ./sim -- \
		WEIR_SEEDS=$(CHECK_SEEDS) WEIR_ROUNDS=3 go test -json -tags $(TAGS) -timeout 15m ./...

.PHONY: soak
soak: $(REPORT) ## all seeds and all rounds of kills; hours
	WEIR_SEEDS=$(SOAK_SEEDS) WEIR_ROUNDS=20 $(REPORT) go test -json -count=1 -tags $(TAGS) -timeout 12h $$(go list ./... | grep -E '/(sim|cmd)(/|$$)')

.PHONY: sim
sim: ## one life of the simulated cluster: make sim SEED=42
	WEIR_SEED=$(SEED) go test -count=1 -v -tags $(TAGS) ./sim/...

.PHONY: swarm
swarm: ## many lives: make swarm N=1000
	WEIR_SEEDS=$(N) go test -count=1 -tags $(TAGS) -timeout 12h ./sim/...

.PHONY: stress
stress: ## one package over and over, with -race: make stress PKG=taskmanager/task N=100
	CGO_ENABLED=1 go test -race -failfast -count=$(N) -tags $(TAGS) -timeout 12h ./$(PKG)

.PHONY: fuzz
fuzz: ## each fuzz test of a package in turn: make fuzz PKG=netstack/wire FUZZ_TIME=60s
	@for f in $$(go test -list '^Fuzz' ./$(PKG) | grep '^Fuzz'); do \
		go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZ_TIME) ./$(PKG); done

.PHONY: bench
bench: build ## each program of bench: subject and bare loop in turn, the ratio with its interval
	@status=0; mkdir -p build/bench; \
	for p in $$(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./bench/...); do \
		go build -o build/bench/ $$p; echo "== $$p"; build/bench/$${p##*/} || status=1; done; exit $$status

.PHONY: generate
generate: ## Go code from proto/*.proto
	cd tools && go run ./generate ..

.PHONY: vuln
vuln: ## known vulnerabilities; needs the network
	$(TOOL) govulncheck ./...

.PHONY: clean
clean: ## remove what was built
	rm -rf bin build

# The parts of check that run no tests.
.PHONY: static
static:
	@echo "== gofmt"; bad=$$(gofmt -l $$(find . -name '*.go' -not -path './bin/*' -not -path './build/*' -not -path './.*')); \
		if [ -n "$$bad" ]; then echo "not formatted:"; echo "$$bad"; exit 1; fi
	@echo "== tidy"; go test -count=1 ./internal/tidy
	@echo "== vet"; go vet ./... && go vet -tags 'invariants planted stoppoints' ./... && go vet -C tools ./...
	@echo "== staticcheck"; $(TOOL) staticcheck ./...
	@echo "== sumtype"; $(TOOL) go-check-sumtype ./...
	@echo "== generated code"; rm -rf build/generated && mkdir -p build/generated && cp -r proto build/generated/ && \
		(cd tools && go run ./generate ../build/generated) && diff -r proto build/generated/proto && rm -rf build/generated

# Built anew each time: go build knows best whether it must.
.PHONY: $(REPORT)
$(REPORT):
	@go build -C tools -o ../$(REPORT) ./report
