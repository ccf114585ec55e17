# SPDX-License-Identifier: GPL-2.0-only
#
# make             build the tools
# make setup       install the packages that are missing (apt, as root or sudo)
# make campaign    set up, build, and run campaign 528
# make check       set up and run all tests
# make check-fast  the tests that need no kernel of our own, on an unchanged tree
# make check-unit  the unit tests; check-valgrind: the same under valgrind,
#                  check-mutants: that they can fail
# make check-man   the man pages against mandoc and against --help
# make check-shell the tests of the shell side
# make bench       measure the audit and the replay, side by side
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

Q	= @
PROVE	= prove --timer
ifeq ($(V),1)
Q	=
endif

TOOLS	= lwaudit lwpoints lwreplay crashcheck fsync-writers supervise init
BINS	= $(TOOLS:%=$(B)/bin/%)

UNIT	= audit capture extmap log model points state verify zst
UNITS	= $(UNIT:%=$(B)/tests/unit/test-%)

# What each tool is made of, besides its own file
LOG	= $(B)/replay/util.o $(B)/replay/log.o $(B)/replay/zst.o
LOG_LIBS = -lzstd
CAPTURE	= $(B)/replay/capture.o $(B)/workloads/model.o
AUDIT	= $(B)/replay/audit.o

all: $(BINS)

$(B)/bin/lwaudit: $(B)/replay/lwaudit.o $(LOG) $(CAPTURE) $(AUDIT)
$(B)/bin/lwpoints: $(B)/replay/lwpoints.o $(LOG) $(CAPTURE) $(AUDIT) \
		   $(B)/replay/points.o
$(B)/bin/lwreplay: $(B)/replay/lwreplay.o $(LOG) $(B)/replay/state.o
$(B)/bin/crashcheck: $(B)/replay/crashcheck.o $(LOG) $(CAPTURE) $(AUDIT) \
		     $(B)/replay/state.o $(B)/replay/dm.o \
		     $(B)/replay/blockdev.o $(B)/workloads/verify.o
$(B)/bin/fsync-writers: $(B)/workloads/fsync-writers.o $(CAPTURE) \
			$(B)/replay/util.o $(B)/replay/dm.o
$(B)/bin/supervise: $(B)/harness/engine/supervise.o $(B)/replay/util.o
$(B)/bin/init: $(B)/harness/guest/init.o

$(B)/bin/lwaudit: LIBS = $(LOG_LIBS) -ljansson -lsmartcols
$(B)/bin/lwpoints: LIBS = $(LOG_LIBS) -ljansson
$(B)/bin/lwreplay: LIBS = $(LOG_LIBS)
$(B)/bin/fsync-writers: LIBS = -ljansson -ldevmapper
$(B)/bin/crashcheck: LIBS = $(LOG_LIBS) -ljansson -ldevmapper -lmount -lblkid

# Each unit test is linked with all that needs no device
$(UNITS): %: %.o $(B)/tests/unit/mklog.o $(LOG) $(AUDIT) \
	     $(B)/replay/extmap.o $(B)/replay/points.o $(B)/replay/state.o \
	     $(B)/workloads/model.o $(B)/workloads/verify.o
$(UNITS): LIBS = $(LOG_LIBS)

$(B)/tests/unit/test-capture: $(B)/replay/capture.o
$(B)/tests/unit/test-capture: LIBS += -ljansson

# A capture for the tests of the shell side
MKCAPTURE = $(B)/tests/shell/mkcapture
$(MKCAPTURE): $(B)/tests/shell/mkcapture.o $(B)/tests/unit/mklog.o $(LOG) \
	      $(B)/workloads/model.o
$(MKCAPTURE): LIBS = $(LOG_LIBS)

$(BINS) $(UNITS) $(MKCAPTURE):
	@mkdir -p $(@D)
	@echo "  LD    $(@F)"
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LIBS)

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

check-lint:
	$(Q)shellcheck -S warning -x $(BASH)

# The pages and what --help says go together; init is of the guests only
check-man: all
	$(Q)B=$(B) tests/check-man $(filter-out init,$(TOOLS))

check-unit: $(UNITS)
	$(Q)$(PROVE) --exec "" $(UNITS)

check-shell: all $(MKCAPTURE)
	$(Q)B=$(B) bats tests/shell

# Real kernels: builds the variants that they need first
check-e2e: all
	$(Q)harness/ackproof kernel build $$(ls kernel-patches/variants)
	$(Q)tests/e2e/run

# A leak is a failure, too
check-valgrind: $(UNITS)
	$(Q)$(PROVE) --exec "valgrind --error-exitcode=9 --leak-check=full -q" \
		$(UNITS)

bench: all
	$(Q)tests/bench

# Each of many small bugs must make the test of its place fail
check-mutants:
	$(Q)tests/mutate

clean:
	rm -rf build/bin build/replay build/workloads build/harness build/tests \
		build/sanitize

.PHONY: all setup campaign check check-fast check-lint check-man check-unit
.PHONY: check-shell check-e2e check-valgrind check-mutants bench clean
.DELETE_ON_ERROR:
