#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the form of our patches: as the kernel's own checker wants them, and
# applying to the source without fuzz.

load helpers

setup()
{
	e2e_setup
	ackproof -q kernel build series
	tree=$(echo "$ACKPROOF_BUILD"/kernel/linux-source-6.12-*/tree)
}

@test "checkpatch finds nothing" {
	cd "$tree"
	# a packaged source has no history to look commits up in
	perl scripts/checkpatch.pl -q --ignore UNKNOWN_COMMIT_ID \
		"$top"/kernel-patches/6.12/*.patch "$top"/kernel-patches/mutants/*.patch
}

@test "the series and each mutant apply without fuzz" {
	local patch mutant
	local -a ours

	mapfile -t ours < "$top/kernel-patches/6.12/series"
	for mutant in "$top"/kernel-patches/mutants/*.patch; do
		rm -rf pristine
		mkdir pristine
		cp -r "$tree/../orig/." pristine
		for patch in "${ours[@]/#/$top/kernel-patches/6.12/}" "$mutant"; do
			run -0 patch -d pristine -p1 --fuzz=0 -f < "$patch"
		done
	done
}
