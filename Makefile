# SPDX-License-Identifier: GPL-2.0-only
#
# make             build the tools
# make setup       install the packages that are missing (apt, as root or sudo)
# make campaign    set up, build, and run campaign 528
# make check       set up and run all tests
# make check-fast  the tests that need no kernel of our own, on an unchanged tree
# make check-unit  the unit tests; check-valgrind: the same under valgrind,
#                  check-mutants: that they can fail
# make check-fuzz  the log library against damaged logs, for some seconds; or
#                  make fuzz SECONDS=600
# make check-man   the man pages against mandoc and against --help
# make check-shell the tests of the shell side
# make check-bisect bisect a history on real kernels: too slow for make check
# make bench       measure the log library, the audit and the replay, side by
#                  side; bench-log: the log library alone
#
# V=1 shows the commands. SANITIZE=address,undefined builds with sanitizers,
# into a folder of its own.

CC	= gcc
CFLAGS	= -O2 -g
WARN	= -Wall -Wextra -Werror -Wno-missing-field-initializers
B	= build

ifdef SANITIZE
B	= build/sanitize
CFLAGS	= -O1 -g -fsanitize=$(SANITIZE) -fno-sanitize-recover=all
endif

# See check-fuzz
ifdef FUZZING
B	= build/fuzz
CC	= clang
CFLAGS	= -O1 -g -DFUZZING -fno-sanitize-recover=all \
	  -fsanitize=address,undefined,fuzzer-no-link
endif

Q	= @
PROVE	= prove --timer
ifeq ($(V),1)
Q	=
endif

TOOLS	= lwaudit lwbisect lwexplain lwlog lwpoints lwreplay replay-log \
	  crashcheck fsync-writers supervise init
BINS	= $(TOOLS:%=$(B)/bin/%)

UNIT	= audit bisect capture check ddmin explain extmap index journal log \
	  model places points state trace verify where zst
UNITS	= $(UNIT:%=$(B)/tests/unit/test-%)

# All that is not a tool's own: each takes what it needs. It is one library with
# the log and all on top of it, and nothing in it reaches into the harness.
LIB	= $(B)/libackproof.a
LIB_OBJS = $(addprefix $(B)/replay/, audit.o bisect.o bisect-log.o \
	     blockdev.o capture.o check.o compare.o ddmin.o digest.o dm.o \
	     explain.o extmap.o fsck.o index.o journal.o log.o places.o \
	     points.o progress.o seen.o source.o state.o trace.o trial.o \
	     util.o where.o zst.o) \
	   $(addprefix $(B)/workloads/, model.o verify.o)

all: $(BINS)

$(LIB): $(LIB_OBJS)
	@echo "  AR    $(@F)"
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BINS): $(LIB)
$(B)/bin/crashcheck: $(addprefix $(B)/replay/crashcheck, .o -bisect.o \
		  -minimal.o)
$(B)/bin/fsync-writers: $(B)/workloads/fsync-writers.o
$(B)/bin/init: $(B)/harness/guest/init.o
$(B)/bin/lwaudit: $(B)/replay/lwaudit.o
$(B)/bin/lwbisect: $(B)/replay/lwbisect.o
$(B)/bin/lwexplain: $(addprefix $(B)/replay/lwexplain, .o -gnuplot.o \
		  -json.o -text.o)
$(B)/bin/lwlog: $(addprefix $(B)/replay/lwlog, .o -check.o -convert.o \
		  -filter.o -find.o -index.o -list.o -print.o -stat.o -tail.o)
$(B)/bin/lwpoints: $(B)/replay/lwpoints.o
$(B)/bin/lwreplay: $(B)/replay/lwreplay.o
$(B)/bin/replay-log: $(B)/replay/replay-log.o
$(B)/bin/supervise: $(B)/harness/engine/supervise.o

$(B)/bin/crashcheck: LIBS = -lzstd -ljansson -ldevmapper -lmount -lblkid
$(B)/bin/fsync-writers: LIBS = -ljansson -ldevmapper
$(B)/bin/lwaudit: LIBS = -lzstd -ljansson -lsmartcols
$(B)/bin/lwbisect: LIBS = -lzstd -ljansson -lblkid
$(B)/bin/lwexplain: LIBS = -lzstd -ljansson
$(B)/bin/lwlog: LIBS = -lzstd -ljansson
$(B)/bin/lwpoints: LIBS = -lzstd -ljansson
$(B)/bin/lwreplay: LIBS = -lzstd -ljansson -lblkid
$(B)/bin/replay-log: LIBS = -lzstd -lblkid

$(UNITS): %: %.o $(B)/tests/unit/mklog.o $(LIB)
$(UNITS): LIBS = -lzstd -ljansson
# This one stands between the library and the target
$(B)/tests/unit/test-state: LIBS += -Wl,--wrap=pwrite,--wrap=fallocate \
	-Wl,--wrap=fdatasync

# Captures and logs for the tests of the shell side
MADE	= mkcapture mklog
MAKERS	= $(MADE:%=$(B)/tests/shell/%)
$(MAKERS): %: %.o $(B)/tests/unit/mklog.o $(LIB)
$(MAKERS): LIBS = -lzstd

BENCH	= $(B)/tests/bench-log
$(BENCH): $(B)/tests/bench-log.o $(B)/tests/unit/mklog.o $(LIB)
$(BENCH): LIBS = -lzstd

MKCORPUS = $(B)/tests/fuzz/mkcorpus
$(MKCORPUS): $(B)/tests/fuzz/mkcorpus.o $(B)/tests/unit/mklog.o $(LIB)
$(MKCORPUS): LIBS = -lzstd

FUZZ	= $(B)/tests/fuzz/fuzz-log
$(FUZZ): $(B)/tests/fuzz/fuzz-log.o $(B)/tests/fuzz/mutate-log.o $(LIB)
$(FUZZ): LIBS = -lzstd -fsanitize=fuzzer

$(BINS) $(UNITS) $(MAKERS) $(BENCH) $(MKCORPUS) $(FUZZ):
	@mkdir -p $(@D)
	@echo "  LD    $(@F)"
	$(Q)$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) -std=gnu11 -MMD -MP $(WARN) $(CFLAGS) -c -o $@ $<

-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)

setup:
	$(Q)harness/setup

campaign: setup
	$(Q)$(MAKE) --no-print-directory all
	$(Q)harness/ackproof campaign 528

# Bash is what says so in its first lines
BASH = $$(git grep -lE "^(\#!/bin/bash|\#!.*env bats|\# shellcheck shell=bash)")

check:
	$(Q)harness/setup --tests
	$(Q)tests/run

check-fast: check-lint check-man check-unit check-shell

# Numbers on disk are little-endian, also where the host is not: sparse sees to it.
# Its own exit status is 0 whatever it finds.
check-lint:
	$(Q)shellcheck -S warning -x $(BASH)
	$(Q)command -v sparse > /dev/null
	$(Q)! git ls-files "*.c" | \
		xargs -n 1 sparse -std=gnu11 -D_FORTIFY_SOURCE=0 -Wbitwise \
		2>&1 | grep -v "^/usr"
	$(Q)tests/mutate -n

# The pages and what --help says go together; init is of the guests only
check-man: all
	$(Q)B=$(B) tests/check-man $(filter-out init,$(TOOLS))

check-unit: $(UNITS)
	$(Q)$(PROVE) --exec "" $(UNITS)

check-shell: all $(MAKERS)
	$(Q)B=$(B) bats tests/shell

# Finds a planted commit and a planted patch on real kernels: a quarter of an hour
check-bisect: all
	$(Q)bats tests/e2e/bisect-kernel.bats

# Every variant, and for qemu those that its tests boot
kernels: all
	$(Q)harness/ackproof kernel build $$(ls kernel-patches/variants)
	$(Q)harness/ackproof kernel build --engine qemu series no-own-flush

# Real kernels
check-e2e: kernels
	$(Q)tests/e2e/run

# A leak is a failure, too
check-valgrind: $(UNITS)
	$(Q)$(PROVE) --exec "valgrind --error-exitcode=9 --leak-check=full -q" \
		$(UNITS)

# The log library, built for libFuzzer: the same runs each time
check-fuzz: fuzz-build
	$(Q)tests/fuzz/run

# For so long, on from what it has found before
SECONDS = 600
fuzz: fuzz-build
	$(Q)tests/fuzz/run $(SECONDS)

fuzz-build: $(MKCORPUS)
	$(Q)$(MAKE) --no-print-directory FUZZING=y build/fuzz/tests/fuzz/fuzz-log

bench: all $(BENCH)
	$(Q)tests/bench

bench-log: $(BENCH)
	$(Q)$(BENCH)

# Each of many small bugs must make the test of its place fail
check-mutants:
	$(Q)tests/mutate

clean:
	rm -rf build/bin build/libackproof.a build/replay build/workloads \
		build/harness build/tests build/sanitize build/fuzz

.PHONY: all setup kernels campaign check check-fast check-lint check-man check-unit
.PHONY: check-bisect check-shell check-e2e check-valgrind check-mutants bench
.PHONY: bench-log check-fuzz fuzz fuzz-build clean
.DELETE_ON_ERROR:
