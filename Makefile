# `make demo` and `make test` do all the set-up that a fresh machine with Rust, make and a C compiler needs.

.PHONY: demo test libclang postgresql lsp-clients pre-commit
.DEFAULT_GOAL := demo

ifeq ($(shell uname -s),Darwin)
# The first of these that is there; the build does not look into all of them.
export LIBCLANG_PATH ?= $(shell ls -d /opt/homebrew/opt/llvm/lib /usr/local/opt/llvm/lib \
	/Library/Developer/CommandLineTools/usr/lib \
	/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib 2>/dev/null | head -n 1)
endif

demo: libclang
	@./.ci/install-postgresql 18
	cargo build --release --package pgvet
	@echo
	@echo '$$ pgvet check fixtures/demo'
	@target/release/pgvet check fixtures/demo; status=$$?; \
	echo; \
	echo "Exit status $$status: 0 is clean, 1 means findings (expected here), 2 means something could not be checked."; \
	test $$status -le 1
	@echo
	@echo '$$ pgvet trace fixtures/demo --keep-going'
	@PGVET_POSTGRESQL=target/postgresql target/release/pgvet trace fixtures/demo --keep-going --pg-version 18; status=$$?; \
	echo; \
	echo "Exit status $$status: 2 means that a migration fails (expected here: one is made to)."; \
	test $$status -eq 2

test: libclang postgresql lsp-clients pre-commit
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace

# PostgreSQL's parser is C; the bindings to it are generated with libclang.
libclang:
	@./.ci/install-libclang

# Real servers, for the tests that compare the model with them.
postgresql:
	@./.ci/install-postgresql

# Real clients, for the tests of the language server.
lsp-clients:
	@./.ci/install-lsp-clients

# Real pre-commit, for the tests of the hooks.
pre-commit:
	@./.ci/install-pre-commit
