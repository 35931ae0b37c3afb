# The targets. Each but install installs what it needs, ends with one line that sums it up, and exits 0 only on success.

PREFIX ?= /usr/local
SECONDS_EACH ?= 60
BUILT = $(or $(CARGO_TARGET_DIR),target)/release
UNISONO = $(BUILT)/unisono
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

# Crates that others may depend on: those that are not `publish = false`.
CRATES = unisono unisono-kernel unisono-shm unisono-local unisono-sim unisono-table unisono-posix unisono-capi unisono-mpi unisono-model unisono-measure

# For install: the compilers of the MPIs that there shall be libraries for (auto: those that hosts/mpi/build.sh finds; MPICC=: none), and
# the option that strips a shared library (STRIPPED= keeps its symbols).
MPICC ?= auto
STRIPPED ?= -s
LIB = $(DESTDIR)$(PREFIX)/lib
MODULES = $(DESTDIR)$(PREFIX)/share/modulefiles/unisono
# What install makes, below PREFIX.
INSTALLED = bin/unisono lib/libunisono* include/unisono*.h lib/pkgconfig/unisono*.pc lib/cmake/unisono share/modulefiles/unisono
# Installs a shared library, given its name as built and as installed: a file with the full version, and links with the
# major number and without one.
library = install $(STRIPPED) -m 755 $(BUILT)/$(1) $(LIB)/$(2).so.$(VERSION) \
	&& ln -sf $(2).so.$(VERSION) $(LIB)/$(2).so.$(firstword $(subst ., ,$(VERSION))) \
	&& ln -sf $(2).so.$(firstword $(subst ., ,$(VERSION))) $(LIB)/$(2).so

.PHONY: demo test test-mpi ci bench imb figures measured soak numa simgrid levels scale cores fuzz miri mutants docs package install uninstall deb setup release clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: release ## start 4 processes, broadcast a file, print a latency table (under a minute once built)
	@$(UNISONO) demo

test: setup ## the fast tier: format, lints, tests, documentation
	@.ci/test

test-mpi: setup ## real MPI programs with the libraries preloaded, mpi4py's own tests among them, drawn programs for RANDOM_SECONDS (120) under each MPI
	@.ci/test-mpi

ci: ## the checks that CI runs
	@.ci/run

bench: release ## every collective against the MPIs installed: table, JSON, page; QUICK=1: under five minutes
	@QUICK=$(QUICK) .ci/bench $(UNISONO)

imb: setup ## Intel's benchmark IMB-MPI1 under Intel MPI, without the preload and with it (a minute once built)
	@bash .ci/setup python3-minimal
	@.ci/imb

figures: release ## the figures of docs/results/performance.md anew, on a quiet machine (about 3 minutes)
	@bash .ci/setup python3-minimal
	@.ci/figures

measured: release ## the measurements in docs/results/papers.md and docs/results/tuning.md anew, on a quiet machine (about 25 minutes)
	@bash .ci/setup python3-minimal openmpi-bin libopenmpi-dev
	@cargo build --locked --release --quiet -p unisono-bench -p unisono-capi-posix
	@.ci/measured

soak: setup ## the long checks: explorer to length four, all loom models, 100,000 barriers, kills
	@bash .ci/setup g++ python3
	@.ci/soak

numa: setup ## placement and kills on emulated machines with two and four NUMA nodes
	@bash .ci/setup qemu-system-x86 busybox-static cpio binutils openmpi-bin libopenmpi-dev mpich libmpich-dev
	@.ci/numa

simgrid: setup ## collectives over levels under SimGrid's SMPI, beside what four MPIs choose; to 1024 ranks
	@.ci/simgrid

levels: release ## the table of paper P3's cluster in docs/results/levels.md anew, in virtual time (a quarter of an hour)
	@bash .ci/setup python3-minimal
	@.ci/levels

scale: release ## the tables of docs/results/scale.md anew: the algorithms over a segment on simulated machines of up to 128 cores
	@bash .ci/setup python3-minimal
	@.ci/scale

cores: release ## the table of docs/results/cores.md anew: the algorithms over a segment on this machine's cores, up to 16 ranks (about 4 minutes)
	@bash .ci/setup python3-minimal
	@.ci/cores measure $(BUILT)/../cores && .ci/cores page $(BUILT)/../cores

fuzz: setup ## each fuzz target for SECONDS_EACH seconds
	@bash .ci/setup g++
	@fuzz/run.sh $(SECONDS_EACH)

miri: ## the code that ships, between threads, under Miri, on the nightly compiler, for SECONDS seconds (300)
	@.ci/miri $(or $(SECONDS),300)

mutants: setup ## changes the code in one place at a time: some test must notice (an hour; SHARD=1/10: a tenth)
	@bash .ci/setup python3
	@SHARD=$(SHARD) .ci/mutants $(FILES)

docs: setup ## the API documentation, in target/doc
	@RUSTDOCFLAGS=-Dwarnings cargo doc --locked --workspace --no-deps --quiet
	@echo "docs: target/doc/unisono_kernel/index.html"

package: setup ## the crates for others as packages, each built from its package alone (docs/howto/package.md)
	@.ci/package $(CRATES)

install: ## program, C libraries, libraries to preload under the MPIs here, headers, files for pkg-config, CMake and modules below PREFIX; installs no packages
	@cargo build --locked --release --quiet -p unisono-cli
	@cargo build --locked --release --quiet -p unisono-capi -p unisono-capi-posix -p unisono-heap
	@install -d $(DESTDIR)$(PREFIX)/bin $(LIB)/pkgconfig $(LIB)/cmake/unisono $(DESTDIR)$(PREFIX)/include $(MODULES)
	@install -m 755 $(UNISONO) $(DESTDIR)$(PREFIX)/bin/
	@$(call library,libunisono_c.so,libunisono) && $(call library,libunisono_posix_c.so,libunisono_posix)
	@install $(STRIPPED) -m 755 $(BUILT)/libunisono_heap.so $(LIB)/
	@install -m 644 $(BUILT)/libunisono_c.a $(LIB)/libunisono.a
	@status=3; [ -z "$(MPICC)" ] || { built=$$(MPICC="$(filter-out auto,$(MPICC))" hosts/mpi/build.sh); status=$$?; }; \
	case $$status in 0) for library in $$(printf '%s\n' $$built | grep -v smpi); do install $(STRIPPED) -m 755 $$library $(LIB)/ || exit 1; done ;; \
	3) echo "install: no C compiler here: nothing to preload" >&2 ;; *) exit 1 ;; esac
	@install -m 644 hosts/capi/include/unisono.h hosts/capi-posix/include/unisono_posix.h hosts/mpi/include/unisono_messages.h $(DESTDIR)$(PREFIX)/include/
	@sed 's|@PREFIX@|$(PREFIX)|' hosts/capi/unisono.pc.in > $(LIB)/pkgconfig/unisono.pc
	@sed 's|@PREFIX@|$(PREFIX)|' hosts/capi-posix/unisono_posix.pc.in > $(LIB)/pkgconfig/unisono_posix.pc
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' hosts/packaging/unisono_preload.pc.in > $(LIB)/pkgconfig/unisono_preload.pc
	@install -m 644 hosts/packaging/unisono-config.cmake $(LIB)/cmake/unisono/
	@sed 's|@VERSION@|$(VERSION)|' hosts/packaging/unisono-config-version.cmake.in > $(LIB)/cmake/unisono/unisono-config-version.cmake
	@sed 's|@PREFIX@|$(PREFIX)|' hosts/packaging/modulefile.in > $(MODULES)/$(VERSION)
	@echo "install: $$(cd $(DESTDIR)$(PREFIX) && echo $(INSTALLED)) below $(DESTDIR)$(PREFIX)"

uninstall: ## remove what install has put below PREFIX
	@cd $(DESTDIR)$(PREFIX) && rm -rf $(INSTALLED)
	@echo "uninstall: nothing of unisono is left below $(DESTDIR)$(PREFIX)"

deb: ## a Debian package of what install installs, in target/deb
	@hosts/packaging/deb target/deb

setup:
	@bash .ci/setup

release: setup
	@cargo build --locked --release --quiet -p unisono-cli

clean: ## remove what was built
	@cargo clean
