# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What the tests of the ackproof command share.

bats_require_minimum_version 1.5.0

# Run in the test's own folder, with all that is built and run below it
own_folder()
{
	top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd -P)
	built=$top/${B:-build}
	cd "$BATS_TEST_TMPDIR" || return
	export ACKPROOF_BUILD=$PWD/build ACKPROOF_RESULTS=$PWD/results
	export ACKPROOF_JOBS=$PWD/jobs
	# a test that goes too far must not build a real kernel
	export ACKPROOF_TARBALL=$PWD/no-tarball
	# no test of these needs to be watched over, unless it says so
	export ACKPROOF_SUPERVISED=1
	mkdir build
	ln -s "$built/bin" build/bin
}

ackproof()
{
	"$top/harness/ackproof" "$@"
}

KERNEL=0123456789abcdef

# A kernel that capture lost was recorded on; stdin is its program
make_kernel()
{
	local dir=build/kernel/out/$KERNEL

	mkdir -p $dir/patches
	cat > $dir/linux
	chmod 755 $dir/linux
	echo CONFIG_X=y > $dir/config
	echo 'a patch' > "$dir/patches/0001-a patch.patch"
	echo "{\"variant\": \"odd\", \"hash\": \"$KERNEL\", \"version\": \"6.12.1\"}" \
		> $dir/variant.json
	jq --slurpfile variant $dir/variant.json \
		--arg sum "$(sha256sum < $dir/linux | cut -d ' ' -f 1)" \
		'.kernel = $variant[0] + {linux_sha256: $sum}' lost/capture.json \
		> capture.json
	mv capture.json lost/
}

# Exit status $1, nothing on stdout, and $2, one line, on stderr
fails_with()
{
	local status=$1 message=$2

	shift 2
	run --separate-stderr -"$status" ackproof "$@"
	# shellcheck disable=SC2154 # bats sets it
	echo "stdout: '$output', stderr: '$stderr', expected: '$message'"
	[ -z "$output" ]
	# shellcheck disable=SC2053 # it is a pattern
	[[ $stderr == $message ]]
	[[ $stderr != *$'\n'* ]]
}

usage_error()
{
	fails_with 2 "ackproof: $1" "${@:2}"
}
