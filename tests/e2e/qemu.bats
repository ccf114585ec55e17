#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards engine qemu: recording, auditing and replaying on several processors, and
# a flush of the guest that is one of the host.

load helpers

setup()
{
	e2e_setup
}

# guest COMMAND: run it with a disk in a file
guest()
{
	ACKPROOF_ROOT=$top
	# shellcheck source=harness/lib/common.sh
	. "$top/harness/lib/common.sh"
	# shellcheck source=harness/lib/job.sh
	. "$top/harness/lib/job.sh"
	engine_load qemu
	eval "${2-}"
	job_new "$BATS_TEST_NUMBER"
	truncate -s 64M "$job/disk"
	job_command "$job" bash -c "$1"
	job_run "$(ackproof -q kernel path --engine qemu series)" "$job" 60 0 "disk=$job/disk"
}

@test "a capture on two processors loses nothing, and its states mount" {
	ackproof -q capture --engine qemu --fsyncs 38 --delay 1,1 c
	jq -e '.engine == "qemu" and .guest.cpus == 2 and .kernel.arch == "x86_64"' c/capture.json
	grep -q 'Brought up 1 node, 2 CPUs' c/dmesg
	ackproof audit c
	ackproof replay --points 12@ack --json c > summary.json
	jq -e '.replays == 12 and .replays_lost == 0 and .kernel.own and .mismatch == null' summary.json
	# the same states on another engine, and its kernel
	ackproof replay --engine uml --points 4@ack --json c > summary.json
	jq -e '.replays == 4 and .replays_lost == 0 and (.kernel.own | not)' summary.json
	nothing_left
}

@test "the guest sees a write cache, and its flushes reach the host" {
	command -v strace > /dev/null || skip "strace is not installed"
	mkdir bin
	printf '#!/bin/sh\nexec strace -f -qq -e trace=fdatasync -o %s/strace %s "$@"\n' \
		"$PWD" "$(command -v qemu-system-x86_64)" > bin/qemu-system-x86_64
	chmod 755 bin/qemu-system-x86_64
	PATH=$PWD/bin:$PATH guest 'cat /sys/block/vda/queue/write_cache
		for i in 1 2 3; do
			dd if=/dev/zero of=/run/ackproof/disk/disk bs=4k count=1 conv=fsync,notrunc status=none
		done'
	[ "$(cat "$job/stdout")" = 'write back' ]
	[ "$(grep -c 'fdatasync(.*= 0' strace)" -ge 3 ]
}

@test "only the job's folder can be written" {
	guest "! touch $top/tests/x && touch inside"
	[ -e "$job/inside" ]
	[ ! -e "$top/tests/x" ]
}

@test "a panic ends the guest" {
	mkdir bin
	cp "$top/build/bin/supervise" bin	# and no init
	run guest true 'ACKPROOF_BIN=$PWD/bin'
	[ "$status" -eq 1 ]
	grep -q '^panic: .*Kernel panic' "$ACKPROOF_JOBS/$BATS_TEST_NUMBER/outcome"
	nothing_left
}

@test "a mutant is caught" {
	ackproof -q capture --engine qemu --variant no-own-flush --fsyncs 38 --delay 2,1 m
	run -1 ackproof audit --json m
	jq -e '.acks_lost > 0' <<< "$output"
	run -1 ackproof -q replay --points 2@suspects m
	[[ $output == *"2 replays, 2 with loss"* ]]
}

@test "killed with -9, it leaves no process" {
	"$top/harness/ackproof" -q capture --engine qemu --fsyncs 1001 c 3>&- &
	until [ -n "$(compgen -G "$ACKPROOF_JOBS/*/capture/capture.json")" ] &&
		pgrep -f "path=$ACKPROOF_JOBS/.*mount_tag=job" > /dev/null; do sleep 0.1; done
	kill -KILL $!
	nothing_left
}
