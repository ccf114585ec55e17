#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the engine: what a guest's command did comes back, and what befell the
# guest is never taken for success.

load helpers

setup()
{
	e2e_setup
	ACKPROOF_ROOT=$top
	# shellcheck source=harness/lib/common.sh
	. "$top/harness/lib/common.sh"
	# shellcheck source=harness/lib/job.sh
	. "$top/harness/lib/job.sh"
	kernel=$(ackproof -q kernel path series)
}

# guest TIMEOUT COMMAND: run it in a guest with a disk in memory
guest()
{
	job_new "$BATS_TEST_NUMBER"
	job_command "$job" bash -c "$2"
	job_run "$kernel" "$job" "$1" 0 disk=ram:131072
}

@test "status, output and kernel log come back" {
	run guest 30 'echo out; echo err >&2; exit 7'
	[ "$status" -eq 1 ]
	job=$ACKPROOF_JOBS/$BATS_TEST_NUMBER
	[ "$(cat "$job/outcome")" = 'exit 7' ]
	[ "$(cat "$job/stdout")" = out ]
	[ "$(cat "$job/stderr")" = err ]
	grep -q 'Linux version' "$job/dmesg"
	[ "$(job_reason "$job")" = err ]
	guest 30 true
	[ "$(cat "$job/outcome")" = 'exit 0' ]
}

@test "only the job's folder can be written" {
	guest 30 "! touch $top/tests/x && ! touch /root-x && touch inside"
	[ -e "$job/inside" ]
	[ ! -e "$top/tests/x" ]
}

@test "a hang ends at the time limit" {
	run guest 3 'sleep 100'
	[ "$status" -eq 1 ]
	[ "$(cat "$ACKPROOF_JOBS/$BATS_TEST_NUMBER/outcome")" = 'hang: no end after 3 s' ]
	nothing_left
}

@test "a panic is an outcome, and its log is kept" {
	mkdir bin
	cp "$ACKPROOF_BIN/supervise" bin	# and no init
	ACKPROOF_BIN=$PWD/bin run guest 30 true
	[ "$status" -eq 1 ]
	grep -q '^panic: .*Kernel panic' "$ACKPROOF_JOBS/$BATS_TEST_NUMBER/outcome"
	grep -q 'Kernel panic' "$ACKPROOF_JOBS/$BATS_TEST_NUMBER/console"
}

@test "a corruption report is an outcome although the command succeeds" {
	run guest 30 'd=/run/ackproof/disk/disk
		mkfs.xfs -q --unsupported "$d" && mount "$d" /run/ackproof/mnt &&
		umount /run/ackproof/mnt &&
		dd if=/dev/urandom of="$d" bs=512 seek=1 count=7 status=none
		mount "$d" /run/ackproof/mnt; exit 0'
	[ "$status" -eq 1 ]
	grep -q '^corruption: .*XFS' "$ACKPROOF_JOBS/$BATS_TEST_NUMBER/outcome"
}

@test "a guest that dies is not taken for one that ended" {
	(
		until pid=$(pgrep -f "uml_dir=$ACKPROOF_JOBS/$BATS_TEST_NUMBER/" | tail -n 1) &&
			[ -e "$ACKPROOF_JOBS/$BATS_TEST_NUMBER/stdout" ]; do sleep 0.1; done
		pkill -KILL -f "/linux .*uml_dir=$ACKPROOF_JOBS/$BATS_TEST_NUMBER/"
	) 3>&- &
	run guest 60 'sleep 50'
	[ "$status" -eq 1 ]
	grep -q '^died: ' "$ACKPROOF_JOBS/$BATS_TEST_NUMBER/outcome"
	nothing_left
}
