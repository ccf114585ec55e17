#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards ackproof doctor: what is not here is said with the command that brings it,
# and the exit status is of the engine that is wanted.

load lib

setup()
{
	own_folder
	mkdir bin
	ln -s /usr/bin/* bin/
	# mkfs.xfs and dmsetup are found elsewhere
	rm -f bin/{qemu-system-x86_64,git,zstd}
	export PATH=$PWD/bin
}

@test "an engine that works, and one whose program is not here" {
	run -0 ackproof doctor --engine uml
	[[ $output == *"uml   works: "* ]]
	run -77 ackproof doctor --engine qemu
	[[ $output == *"qemu  does not work
        qemu-system-x86_64 is not installed
          apt-get install --no-install-recommends qemu-system-x86"* ]]
	# any will do
	run -0 ackproof doctor
}

@test "programs that commands need" {
	run -0 ackproof doctor
	[[ $output == *"missing: git, for kernel --commit, bisect
          apt-get install --no-install-recommends git"* ]]
	[[ $output == *"missing: zstd, for capture export and import"* ]]
	[[ $output != *"missing: jq"* ]]
}

@test "--json" {
	ackproof doctor --json > found
	jq -e '.engines | map(.engine) == ["uml", "qemu", "local"]' found
	jq -e '.engines[1] | (.works | not) and (.missing | length) == 1 and
		(.missing[0].fix | startswith("apt-get install"))' found
	jq -e '.tools | map(select(.here | not) | .program) |
		contains(["git", "zstd"]) and (contains(["jq"]) | not)' found
	jq -e --argjson cores "$(nproc)" '.machine | .cores == $cores and
		.disk_free_mib > 0 and .memory_free_mib > 0' found
}

@test "qemu is made to boot: one that boots nothing does not work" {
	printf '#!/bin/sh\necho "qemu: broken" >&2\nexit 1\n' > bin/qemu-system-x86_64
	chmod 755 bin/qemu-system-x86_64
	run -77 ackproof doctor --engine qemu
	[[ $output == *"qemu-system-x86_64 boots nothing: qemu: broken"* ]]
}

@test "local for somebody who is not root" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to be somebody else"
	rm bin/id
	printf '#!/bin/sh\necho 1000\n' > bin/id
	chmod 755 bin/id
	run -77 ackproof doctor --engine local
	[[ $output == *"local does not work
        needs root"* ]]
}

@test "options" {
	usage_error "unknown argument 'x'; see 'ackproof doctor --help'" doctor x
	usage_error "--engine: 'xen', expected one of uml qemu local; see 'ackproof doctor --help'" \
		doctor --engine xen
	usage_error "--engine needs a name; see 'ackproof doctor --help'" doctor --engine
}
