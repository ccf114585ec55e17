# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For tests that boot real kernels. Kernels are built once, into the project's
# own build folder; jobs and results go to the test's folder.

bats_require_minimum_version 1.5.0

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd -P)
export ACKPROOF_BUILD=${ACKPROOF_BUILD:-$top/build}

# in every test's setup
e2e_setup()
{
	cd "$BATS_TEST_TMPDIR" || return
	export ACKPROOF_JOBS=$BATS_TEST_TMPDIR/jobs
	export ACKPROOF_RESULTS=$BATS_TEST_TMPDIR/results
}

ackproof()
{
	"$top/harness/ackproof" "$@"
}

# Within 5 s, no process may have the test's folder on its command line.
nothing_left()
{
	local i left=''

	for ((i = 0; i < 50; i++)); do
		left=$(pgrep -af "$BATS_TEST_TMPDIR/(jobs|results)" | grep -v pgrep) || return 0
		sleep 0.1
	done
	echo "left behind: $left"
	return 1
}

# A capture for all tests of a file, recorded once: small, of the series
shared_capture()
{
	shared=$BATS_FILE_TMPDIR/shared
	ACKPROOF_JOBS=$BATS_FILE_TMPDIR/jobs ackproof -q capture --variant series \
		--fsyncs 150 --delay 1,1 "$shared"
}

# Copy the shared capture, to damage it
copy_capture()
{
	cp -r --sparse=always "$BATS_FILE_TMPDIR/shared" "$1"
}

# flip FILE OFFSET: change one byte
flip()
{
	local byte

	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059 # the format is the byte
	printf "\\x$(printf %02x $((byte ^ 1)))" |
		dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
