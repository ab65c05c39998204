# The developers' door. Newcomers: ./demo and ./check.
PRESET ?= dev

all: build/spoor

build/spoor: FORCE
	@[ -e build/build.ninja ] || cmake --preset dev >/dev/null
	@ninja -C build --quiet
	@echo "built  $(CURDIR)/build/spoor"
	@echo "       $(CURDIR)/build/libspoor.so and libspoor.a, the library"
	@echo "next   build/spoor doctor"

test: all
	ctest --test-dir build --output-on-failure -j2 -LE slow

# Any preset: make preset PRESET=asan
preset:
	@cmake --preset $(PRESET) >/dev/null && cmake --build --preset $(PRESET) --parallel

hostile:
	@$(MAKE) --no-print-directory preset PRESET=hostile && ctest --test-dir build-hostile --output-on-failure -R '^(unit|fuzz)/'

# Rewrites what the cases of tests/cli expect; read the diff like code.
golden: all
	tests/cli/run.sh --golden build/spoor tests/cli/*/*.sh

# Lays out every C file by .clang-format (version 14, as tests/format.sh).
format:
	git ls-files '*.[ch]' | xargs clang-format -i

# One fuzz target for a minute: make fuzz SUBJECT=nettrace
fuzz:
	@$(MAKE) --no-print-directory preset PRESET=fuzz
	@mkdir -p build-fuzz/found/$(SUBJECT)
	build-fuzz/tests/fuzz_$(SUBJECT) -max_total_time=60 build-fuzz/found/$(SUBJECT) tests/fuzz/corpus/$(SUBJECT)

bench: all
	bench/run $(NAME)

# DESTDIR=FOLDER PREFIX=/usr, as ever.
install: all
	@ninja -C build --quiet libspoor.so libspoor.a
	DESTDIR=$(DESTDIR) cmake --install build --strip $(if $(PREFIX),--prefix $(PREFIX))

# libspoor as two files, build/amalgamation/spoor.c and spoor.h, for programs that build it themselves.
amalgamation:
	scripts/amalgamate build/amalgamation

# Records the binary interface of libspoor that tests/lib/abi.sh holds it to; read the diff: what is gone breaks programs.
abi: all
	tests/lib/abi.sh --record build

# With the prefix of the packages, so that libraries go into the folder of the architecture.
deb:
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=/usr >/dev/null
	@$(MAKE) --no-print-directory preset PRESET=release
	cd build-release && cpack && ls -l *.deb

clean:
	rm -rf build build-*

FORCE:
.PHONY: all test preset hostile golden format fuzz bench install amalgamation abi deb clean FORCE
