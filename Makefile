# The front door: `make` lists what there is.
TO ?= fr
MINUTES ?= 5
JOBS ?= 2
export TO MINUTES JOBS

.DEFAULT_GOAL := help
.PHONY: help demo test test-all format install-dependencies compare compare-attention clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## train a translator on Debian's catalogues for five minutes and show it (TO=de, MINUTES=15)
	@scripts/demo

test: ## everything that has to pass before a change is merged
	@scripts/test

test-all: ## make test, then the quick tests built by clang and checked by clang-tidy
	@scripts/test all

format: ## format all C++ files
	@git ls-files -z --cached --others --exclude-standard '*.h' '*.cc' | xargs -0 -r clang-format-14 -i

install-dependencies: ## install what the build needs (Debian packages)
	@scripts/install-dependencies build

compare: ## PEERS=DIR: the same training here and in PyTorch, as ratios
	@scripts/compare "$(PEERS)"

compare-attention: ## PEERS=DIR: the attention kernels beside PyTorch and ONNX Runtime, as ratios, with a plot
	@scripts/compare-attention "$(PEERS)"

clean: ## remove build and demo (downloads in .cache stay)
	@rm -rf build demo
