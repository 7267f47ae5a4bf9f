# Two commands: `make run` and `make test`. Both install what they need (Debian; a Rust toolchain is expected).

DATA ?= ./melba-data
LISTEN ?= 127.0.0.1:5432

.PHONY: run build test clients setup setup-test

run: build
	@scripts/setup.sh run
	./target/release/melba serve --data $(DATA) --listen $(LISTEN)

build: setup
	@echo "building melba (several minutes the first time)"
	cargo build --release --package melba

# Without line tables, which take a tenth of the compiler's time.
test: setup-test
	CARGO_PROFILE_DEV_DEBUG=0 cargo xtask ci

# The published tests of drivers and ORMs on Melba and on PostgreSQL; an hour or more, and the network. SUITE=NAME runs one.
clients: build setup-test
	MELBA=target/release/melba cargo xtask suites $(SUITE)

setup:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh build test
