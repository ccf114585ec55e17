#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards what ackproof bisect log makes of what its guest has found: the exit
# status, the line that finds the first bad state again, and a kernel that
# complains. The guest is a script in the place of the kernel.

load lib

setup()
{
	own_folder
	"$built/tests/shell/mkcapture" lost loss
	guest | make_kernel
	ackproof audit --json lost > audit.json || :
	at=$(jq '.losses[0].from_entry' audit.json)
	token=$(jq -r .log_xxh128 audit.json)@$at:stale:w0:f0:b0:op4:got3
	finds "$at"
}

teardown()
{
	[ -z "$(ls jobs)" ]
}

guest()
{
	cat <<- 'END'
		#!/bin/bash
		for arg; do case $arg in ACKPROOF_JOB=*) job=${arg#*=};; esac; done
		cp "$job/command" "$FOUND/"
		cp "$FOUND"/{report.txt,report.json,points.jsonl} "$job/"
		cat "$FOUND/console"
		echo 0 > "$job/status"
	END
}

# What the guest finds: bad states from entry $1 on, or none
finds()
{
	local again="ackproof replay --points $1 /run/ackproof/host$PWD/lost"

	export FOUND=$PWD/found
	mkdir -p found
	: > found/console
	if [ -z "$1" ]; then
		echo '30 states, 9 checked: 0 bad windows' > found/report.txt
		echo '{"bad": [], "first_bad": null}' > found/report.json
		: > found/points.jsonl
		return
	fi
	printf '%s\n' '30 states, 9 checked: 1 bad window' "reproduce: $again" > found/report.txt
	jq -n --argjson at "$1" --arg again "$again" \
		'{bad: [{}], first_bad: {entry: $at}, reproduce: $again}' > found/report.json
	jq -nc --argjson at "$1" '{point: $at, mount: "ok", losses: [{kind: "stale",
		writer: 0, file: 0, block: 0, op: 4, got: 3}], repair: null}' \
		> found/points.jsonl
}

@test "the first bad state by its token" {
	run -1 ackproof -q bisect log lost
	[ "$output" = "30 states, 9 checked: 1 bad window"$'\n'"reproduce: ackproof reproduce $token $PWD/lost" ]
	run -1 ackproof -q bisect log --json lost
	[ "$(jq -r .reproduce <<< "$output")" = "ackproof reproduce $token $PWD/lost" ]
	grep -q -- ' --bisect loss .* --budget 60 ' found/command
}

@test "no bad state" {
	finds ''
	run -0 ackproof -q bisect log --check mount --budget 9 lost
	[ "$output" = '30 states, 9 checked: 0 bad windows' ]
	grep -q -- ' --bisect mount .* --budget 9 ' found/command
}

@test "a kernel that complains is no good end, whatever was found" {
	finds ''
	echo 'XFS (dm-3): Corruption detected' > found/console
	run -1 ackproof -q bisect log lost
	[ "${lines[-1]}" = 'the kernel complained: corruption: XFS (dm-3): Corruption detected' ]
	run -1 ackproof -q bisect log --json lost
	jq -e '.bad == [] and (.complaint | startswith("corruption: "))' <<< "$output"
}

@test "on another kernel, the line that finds it again names that one" {
	mkdir -p source/{fs,drivers/md} patches/{variants,config}
	guest > source/fs/guest.c
	touch source/{Kconfig,fs/Kconfig} patches/config/{common,um}.config
	cp "$BATS_TEST_DIRNAME/kernel/Makefile" source/
	echo 'about nothing' > patches/variants/odd
	export ACKPROOF_PATCHES=$PWD/patches
	dir=$(ackproof -q kernel path --source source odd)
	chmod 755 "$dir/linux"
	run -1 ackproof -q bisect log --source source lost
	[ "${lines[-1]}" = "reproduce: ackproof replay --source $PWD/source --points $at $PWD/lost" ]
}

@test "a guest that ends without a report" {
	rm found/report.*
	echo 'Kernel panic - not syncing: no reason' > found/console
	guest | sed '/^echo 0/d' | make_kernel
	run -1 --separate-stderr ackproof -q bisect log lost
	[ -z "$output" ]
	# shellcheck disable=SC2154 # bats sets it
	[[ $stderr == "ackproof: the search failed: panic: Kernel panic - not syncing: no reason; see "* ]]
	rm -r jobs/*
}
