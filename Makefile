# Two commands: `make run` and `make test`. Both install what they need (Debian; a Rust toolchain is expected).

DATA ?= ./melba-data
LISTEN ?= 127.0.0.1:5432

.PHONY: run build test setup setup-test

run: build
	./target/release/melba serve --data $(DATA) --listen $(LISTEN)

build: setup
	@echo "building melba (several minutes the first time)"
	cargo build --release --package melba

test: setup-test
	cargo xtask ci

setup:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh build test
