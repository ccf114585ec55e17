# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Jobs: a folder and a guest that runs a command in it. Nothing is written
# outside the folder. One that a killed run has left is reused by the next.

# shellcheck source=harness/lib/engine.sh
. "$ACKPROOF_ROOT/harness/lib/engine.sh"

ACKPROOF_JOBS=$(realpath -m "${ACKPROOF_JOBS:-$ACKPROOF_BUILD/jobs}")

# Where a guest has the job, the host and the disks: see harness/guest/init.c
GUEST=/run/ackproof

# Make job $1's folder, empty, and hold it: sets job.
job_new()
{
	job=$ACKPROOF_JOBS/$1
	plain_path "$job"
	mkdir -p "$job"
	lock "$job/lock" "$job"
	# from inside: -path takes a pattern
	(cd "$job" && find . -mindepth 1 ! -path ./lock -delete)
}

job_drop()
{
	rm -rf "$1"
}

# Drop the job that job_new has made whenever this process ends
job_drop_at_exit()
{
	_dropped_at_exit=$job
	trap 'job_drop "$_dropped_at_exit"' EXIT
}

# Write job $1's command: the rest is a program and its arguments.
job_command()
{
	local dir=$1

	shift
	printf '%q ' exec "$@" > "$dir/command"
}

# job_run KERNEL JOB TIMEOUT CPU DISK...
#
# Run the job's command in a guest. The outcome goes to JOB/outcome, one line:
# "exit N", or what ended or marred the guest: "panic: ...", "oops: ...",
# "corruption: ...", "hang: ...", "died". Returns 0 only for "exit 0".
job_run()
{
	local dir=$2 timeout=$3 status=0

	rm -f "$dir/status" "$dir/outcome" "$dir/dmesg"
	engine_boot "$@" || status=$?
	replace_file "$dir/outcome" _outcome "$dir" "$timeout" "$status"
	[ "$(cat "$dir/outcome")" = 'exit 0' ]
}

# The first line of the kernel's log that one of the patterns matches
_complaint()
{
	local dir=$1 pattern=$2

	cat "$dir/console" "$dir/dmesg" 2> /dev/null |
		grep -aEm 1 "$pattern" | sed -E 's/^<[0-9]+>//; s/\r$//' || :
}

_outcome()
{
	local dir=$1 timeout=$2 status=$3 line

	line=$(_complaint "$dir" 'Kernel panic')
	[ -z "$line" ] || { echo "panic: $line"; return; }
	line=$(_complaint "$dir" 'Oops|(^|[^A-Z])BUG:|kernel BUG at|general protection|WARNING: CPU|Segfault with no mm')
	[ -z "$line" ] || { echo "oops: $line"; return; }
	line=$(_complaint "$dir" 'XFS.*([Cc]orrupt|CRC error|run xfs_repair|Internal error|I/O [Ee]rror|[Ss]hutting down|Assertion failed)')
	[ -z "$line" ] || { echo "corruption: $line"; return; }
	line=$(_complaint "$dir" 'blocked for more than')
	[ -z "$line" ] || { echo "hang: $line"; return; }
	[ "$status" -ne 124 ] || { echo "hang: no end after $timeout s"; return; }
	if [ -s "$dir/status" ]; then
		echo "exit $(cat "$dir/status")"
	else
		line=$(_complaint "$dir" '^ackproof init: ')
		echo "died: ${line:-the guest ended with status $status and left none of its command}"
	fi
}

# Why job $1 failed: what its command said last, or else the outcome
job_reason()
{
	local dir=$1 outcome

	outcome=$(cat "$dir/outcome")
	case $outcome in
	exit*)
		if [ -s "$dir/stderr" ]; then
			tail -n 1 "$dir/stderr"
			return
		fi
		;;
	esac
	echo "$outcome"
}
