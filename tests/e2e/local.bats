#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards engine local, which needs root and a kernel with device-mapper: all of it
# runs in a guest, whose kernel is "this machine's own" in there.

load helpers

setup()
{
	e2e_setup
	ACKPROOF_ROOT=$top
	# shellcheck source=harness/lib/common.sh
	. "$top/harness/lib/common.sh"
	# shellcheck source=harness/lib/job.sh
	. "$top/harness/lib/job.sh"
	guest_memory=1024
}

# machine SCRIPT: run it in a guest that has what a machine has: SCRIPT's errors end
# it, and what it says is shown
machine()
{
	local status=0

	job_new "$BATS_TEST_NUMBER"
	cat > "$job/script" <<- 'END'
		ln -s /proc/self/fd /dev/fd
		mkdir -p /run/build /run/results
		ln -s "$1/build/bin" /run/build/bin
		export ACKPROOF_BUILD=/run/build ACKPROOF_RESULTS=/run/results
		export ACKPROOF_JOBS=$PWD/jobs
		ackproof() { "$top/harness/ackproof" "$@"; }
		trap 'cat jobs/*/console 2> /dev/null || :' EXIT
		nothing_left() {
			[ -z "$(dmsetup ls | grep ackproof)" ]
			[ -z "$(cat /sys/block/loop*/loop/backing_file 2> /dev/null)" ]
			[ ! -e /run/ackproof-local ]
		}
		top=$1
		set -eux
	END
	cat >> "$job/script"
	job_command "$job" bash script "$top"
	job_run "$(ackproof -q kernel path series)" "$job" 120 0 data=ram:131072 log=ram:131072 ||
		status=$?
	cat "$job/stdout" "$job/stderr" "$job/outcome"
	return $status
}

@test "a capture and a replay on the kernel that runs, and nothing is left" {
	machine <<- 'END'
		ackproof doctor --engine local
		ackproof -q capture --engine local --fsyncs 38 --delay 1,1 --data-size 128m c
		nothing_left
		jq -e '.engine == "local" and .kernel.source == "running" and
			.kernel.uname == $name and .kernel.variant == "local"' \
			--arg name "$(uname -srvm)" c/capture.json
		ackproof audit c
		ackproof replay --points 12@ack --json c > summary
		jq -e '.replays == 12 and .replays_lost == 0 and .mismatch == null and .kernel.own' summary
		nothing_left
		# only what was said meanwhile
		grep -q 'XFS.*Mounting' c/dmesg
		! grep 'Linux version' c/dmesg || exit 1
	END
}

@test "killed with -9: the next run removes what is left, and clean does" {
	machine <<- 'END'
		start() {
			# itself, not by way of a function, whose shell would die alone
			"$top/harness/ackproof" -q capture --engine local --fsyncs 1001 --data-size 128m c &
			until dmsetup ls | grep ackproof-log; do sleep 0.2; done
			sleep 1
			kill -KILL $!
			wait $! || [ $? -eq 137 ]
			[ ! -e c ]
		}
		start
		dmsetup ls | grep ackproof-log
		until ackproof -q capture --engine local --fsyncs 10 --delay 0,0 --data-size 128m d 2> why; do
			grep "for one at a time\|is in use by" why	# it is still dying
		done
		nothing_left
		start
		sleep 1
		ackproof clean
		nothing_left
		[ -z "$(ls "$ACKPROOF_JOBS")" ]
	END
}

@test "disks of the machine: refused with a signature, and used with --force" {
	machine <<- 'END'
		d=/dev/ram0 l=/dev/ram1
		mkfs.xfs -q --unsupported $d
		status=0
		ackproof capture --engine local --disks $d,$l --fsyncs 10 --delay 0,0 c 2> why || status=$?
		[ $status -eq 1 ]
		grep 'TYPE="xfs".*see --force' why
		blkid -p $d
		ackproof -q capture --engine local --disks $d,$l --force --fsyncs 10 --delay 0,0 c
		jq -e '.disks == "/dev/ram0,/dev/ram1" and .data_size == 134217728' c/capture.json
		ackproof audit c
		ackproof replay --points 4@ack c
		nothing_left
	END
}

@test "one at a time on a machine" {
	machine <<- 'END'
		ackproof -q capture --engine local --fsyncs 301 --data-size 128m c &
		until dmsetup ls | grep ackproof-log; do sleep 0.2; done
		status=0
		ackproof -q capture --engine local --fsyncs 10 --data-size 128m d 2> why || status=$?
		[ $status -eq 77 ]
		grep "for one at a time" why
		wait $!
		[ -e c/log ]
	END
}
