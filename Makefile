# SPDX-License-Identifier: Apache-2.0
#
# Meson builds; this only gives the usual words to it. Every target first runs
# tools/setup, which installs what is missing and is quick when nothing is.

.PHONY: all setup build install demo check check-long check-peers bench lint
.PHONY: bench-python zoo clean

all: build

setup:
	@tools/setup

build: setup
	@test -f build/build.ninja || meson setup build
	@ninja -C build

# make install PREFIX=/usr DESTDIR=folder, as usual.
PREFIX ?= /usr/local
install: build
	@meson configure build --prefix '$(PREFIX)'
	@ninja -C build
	@DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild

demo: build
	build/attn explain samples/minilm.npz --head=1 --row=9
	build/attn run samples/minilm.npz --weights | sed -n '/^who/,$$p'
	build/attn plot samples/minilm.npz --cell=14 \
	    --title='The animal did not cross the street because it was too tired.' \
	    -o build/minilm.png
	@echo
	@echo 'All twelve heads, tokens on the axes: build/minilm.png'

check: setup
	@tools/check

check-long: setup
	@tools/check --long

# Other libraries and ours: docs/bench.md. make bench ROWS=GPT-2 BENCH=--quick
bench: build
	@tools/bench $(if $(ROWS),--only '$(ROWS)') $(BENCH)

# What a call from Python costs beyond the C call.
bench-python: build
	@tools/package .venv build-python
	@.venv/bin/python bench/python_overhead.py build/bench/call_overhead

check-peers: setup
	@tools/check-peers

zoo: build
	@tests/zoo/run.py build/attn

lint: build
	@tools/lint

clean:
	rm -rf build build-*
