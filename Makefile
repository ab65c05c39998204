# The developers' door. Newcomers: ./demo and ./check.
PRESET ?= dev

all: build/spoor

build/spoor: FORCE
	@[ -e build/build.ninja ] || cmake --preset dev >/dev/null
	@ninja -C build --quiet

test: all
	ctest --test-dir build --output-on-failure -j2

# Any preset: make preset PRESET=asan
preset:
	@cmake --preset $(PRESET) >/dev/null && cmake --build --preset $(PRESET) --parallel

install: all
	cmake --install build $(if $(PREFIX),--prefix $(PREFIX))

FORCE:
.PHONY: all test preset install FORCE
