#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards harness/lib/job.sh: what a guest ended with is told from its status,
# its console and its kernel's log, where a complaint of the kernel is worse
# than any status; and a job's folder has one user at a time. The guest is a
# script in the place of the kernel.

load lib

setup()
{
	own_folder
	export -f run_job
	mkdir -p kernel jobs/a
	: > jobs/a/command
}

# Run words as the ackproof command would
in_harness()
{
	ACKPROOF_ROOT=$top bash -eu -o pipefail -c '
		shopt -s inherit_errexit
		. "$ACKPROOF_ROOT/harness/lib/common.sh"
		. "$ACKPROOF_ROOT/harness/lib/job.sh"
		"$@"' ackproof "$@"
}

# Run the job, and say why it ended
run_job()
{
	local status=0

	job_run "$PWD/kernel" "$1" "$2" 0 || status=$?
	job_reason "$1"
	return $status
}

# The guest's script is stdin: "$job" is its job's folder. The job's outcome,
# and job_run's status, must be those.
ends_as()
{
	local outcome=$1 timeout=${3:-20} want=1

	[ "$outcome" != 'exit 0' ] || want=0
	{
		echo '#!/bin/bash'
		# shellcheck disable=SC2016 # it is the guest's
		echo 'for arg; do case $arg in ACKPROOF_JOB=*) job=${arg#*=};; esac; done'
		cat
	} > kernel/linux
	chmod 755 kernel/linux
	run --separate-stderr -$want in_harness run_job "$PWD/jobs/a" "$timeout"
	echo "outcome: $(cat jobs/a/outcome), expected: $outcome"
	# shellcheck disable=SC2053 # it is a pattern
	[[ $(cat jobs/a/outcome) == $outcome ]]
	[ "$(wc -l < jobs/a/outcome)" = 1 ]
	[ "$output" = "${2:-$(cat jobs/a/outcome)}" ]
}

# A guest that ends well but for a line on its console
complains()
{
	ends_as "$1: $2" <<- END
		echo 'all is well'
		echo '$2'
		echo 0 > "\$job/status"
	END
}

@test "the command's status, and the last that it said" {
	ends_as 'exit 0' <<< 'echo 0 > "$job/status"'
	ends_as 'exit 3' <<< 'echo 3 > "$job/status"'
	ends_as 'exit 1' 'cannot mount' <<- 'END'
		printf '%s\n' 'some warning' 'cannot mount' > "$job/stderr"
		echo 1 > "$job/status"
	END
}

@test "what a run before has left does not count" {
	echo 0 > jobs/a/status
	echo 'exit 0' > jobs/a/outcome
	echo 'Kernel panic - not syncing: x' > jobs/a/dmesg
	echo 'Kernel panic - not syncing: x' > jobs/a/console
	ends_as 'exit 4' <<< 'echo 4 > "$job/status"'
	ends_as 'died: *' <<< ':'
}

@test "panic" {
	complains panic 'Kernel panic - not syncing: Attempted to kill init!'
	# what follows from it is not the reason
	ends_as 'panic: Kernel panic - not syncing: Segfault with no mm' <<- 'END'
		echo 'BUG: unable to handle page fault'
		echo 'Kernel panic - not syncing: Segfault with no mm'
		exit 1
	END
}

@test "a complaint in the kernel's log only" {
	ends_as 'corruption: XFS (dm-1): Internal error' <<- 'END'
		printf '<4>%s\r\n' 'all is well' 'XFS (dm-1): Internal error' 'after' \
			> "$job/dmesg"
		echo 0 > "$job/status"
	END
}

@test "oops, BUG and WARNING" {
	complains oops 'Oops: 0002 PREEMPT'
	complains oops 'BUG: kernel NULL pointer dereference, address: 0'
	complains oops 'kernel BUG at fs/xfs/xfs_log.c:100!'
	complains oops 'WARNING: CPU: 0 PID: 1 at fs/xfs/xfs_buf.c:10'
	complains oops 'general protection fault: 0000'
}

@test "XFS reports corruption, although the status is 0" {
	complains corruption 'XFS (dm-1): Metadata corruption detected at xfs_agf_verify'
	complains corruption 'XFS (dm-1): Internal error XFS_WANT_CORRUPTED_GOTO'
	complains corruption 'XFS (dm-1): Corruption of in-memory data detected. Shutting down.'
	complains corruption 'XFS (dm-1): log I/O error -5'
	complains corruption 'XFS: Assertion failed: ip, file: fs/xfs/xfs_inode.c'
}

@test "a hung task, although the status is 0" {
	complains hang 'INFO: task fsync-writers:42 blocked for more than 120 seconds.'
}

@test "lines that are no complaint" {
	ends_as 'exit 0' <<- 'END'
		echo 'XFS (dm-1): Mounting V5 Filesystem'
		echo 'XFS (dm-1): Starting recovery (logdev: internal)'
		echo 'XFS (dm-1): Ending recovery (logdev: internal)'
		echo 'DEBUG: nothing'
		echo 'WARNING: this is beta'
		echo 0 > "$job/status"
	END
}

@test "timeout" {
	ends_as 'hang: no end after 1 s' '' 1 <<< 'exec sleep 600'
	# a guest that had its status already hangs, too
	ends_as 'hang: no end after 1 s' '' 1 <<- 'END'
		echo 0 > "$job/status"
		exec sleep 600
	END
}

@test "a guest that dies" {
	ends_as 'died: the guest ended with status 7 and left none of its command' \
		<<< 'exit 7'
	ends_as 'died: the guest ended with status 137 and left none of its command' \
		<<< 'kill -KILL $$'
	ends_as 'died: ackproof init: mount /proc: No such device' <<- 'END'
		echo 'ackproof init: mount /proc: No such device'
	END
	ends_as 'died: *' <<< ': > "$job/status"'
}

@test "a kernel that is not there" {
	rm -rf kernel
	run -1 in_harness job_run "$PWD/kernel" "$PWD/jobs/a" 20 0
	[[ $(cat jobs/a/outcome) == "died: the guest ended with status 127 "* ]]
}

@test "the guest's disks, memory, core and console" {
	cat > kernel/linux <<- 'END'
		#!/bin/bash
		printf '%s\n' "$@" > args
		grep Cpus_allowed_list: /proc/self/status > cpu
		[ -z "$(cat)" ] && echo 'on the console' && echo 'on stderr' >&2
	END
	chmod 755 kernel/linux
	in_harness job_run "$PWD/kernel" "$PWD/jobs/a" 20 0 \
		data=/x/data log=ram:65536 cow=ram:1024 other=/y || :
	grep -qx 'ACKPROOF_DISKS=data=/dev/ubda,log=/dev/ram0,cow=/dev/ram1,other=/dev/ubdb' args
	grep -qx 'ubd0=/x/data' args
	grep -qx 'ubd1=/y' args
	grep -qx 'brd.rd_nr=2' args
	grep -qx 'brd.rd_size=65536' args
	grep -qx "ACKPROOF_JOB=$PWD/jobs/a" args
	[[ $(cat cpu) =~ ^Cpus_allowed_list:.[0-9]+$ ]]
	[ "$(cat jobs/a/console)" = $'on the console\non stderr' ]
}

@test "job_command: words stay words" {
	run -0 in_harness job_command jobs/a printf '<%s>' 'a b' "it's" '$x' ''
	[ "$(bash jobs/a/command)" = "<a b><it's><\$x><>" ]
}

# Hold job $1 by file descriptor fd
hold()
{
	exec {fd}> "jobs/$1/lock"
	flock -n "$fd"
}

@test "job_new empties a job that was left" {
	mkdir jobs/a/lock.d jobs/a/capture
	touch jobs/a/lock jobs/a/status jobs/a/.hidden jobs/a/capture/lock
	in_harness job_new a
	[ "$(find jobs/a)" = $'jobs/a\njobs/a/lock' ]
}

@test "job_new refuses a job that another process holds, and leaves it" {
	touch jobs/a/status
	hold a
	run -77 in_harness job_new a
	[ "$output" = "ackproof: $PWD/jobs/a is in use by another ackproof" ]
	[ -e jobs/a/status ]
	exec {fd}>&-
	run -0 in_harness job_new a
	[ ! -e jobs/a/status ]
}

# Two jobs of one name, one in the other
twice()
{
	job_new "$1"
	in_harness job_new "$1"
}

@test "a job is held until its process ends, also where brackets are in its path" {
	export ACKPROOF_JOBS=$PWD/'jo[b]s*'
	export -f in_harness twice
	export top
	run -77 in_harness twice a
	[ "$output" = "ackproof: $ACKPROOF_JOBS/a is in use by another ackproof" ]
	run -0 in_harness job_new a
}

@test "a folder whose name has a blank, a comma, a colon or a quote is refused" {
	local name

	for name in 'a b' a,b a:b 'a"b' $'a\tb' $'a\nb'; do
		export ACKPROOF_JOBS=$PWD/$name
		run -77 in_harness job_new a
		[[ $output == "ackproof: '$PWD/$name/a': blanks, quotes, commas and colons in a folder's name are not supported" ]]
		[ ! -e "$ACKPROOF_JOBS" ]
	done
}

@test "clean removes jobs that were left, and leaves those in use" {
	mkdir -p jobs/b/capture jobs/c jobs/not-a-job
	touch jobs/{a,b,c}/lock
	hold a
	run -0 ackproof clean
	[ "$output" = "$PWD/jobs/a is in use" ]
	[ "$(ls jobs)" = $'a\nnot-a-job' ]
	exec {fd}>&-
	run -0 ackproof clean
	[ -z "$output" ]
	[ "$(ls jobs)" = not-a-job ]
	usage_error "unknown argument 'a'; see 'ackproof clean --help'" clean a
	# nothing there is fine
	rm -r jobs
	run -0 ackproof clean
}
