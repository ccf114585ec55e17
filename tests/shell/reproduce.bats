#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards ackproof reproduce: from each form of what was reported to the same
# verdict, and never to another one, another capture or another kernel. The guest
# is a script in the place of the kernel, which says what a mount has found.

load lib

setup()
{
	own_folder
	"$built/tests/shell/mkcapture" lost loss
	guest | make_kernel
	export FOUND=$PWD/found
	record_data
	ackproof audit --json lost > audit.json || :
	hash=$(jq -r .log_xxh128 audit.json)
	at=$(jq '.losses[0].from_entry' audit.json)
	# what the audit and a mount have to say of it
	seen=$hash@$at:stale:w0:f0:b0:op4
	token=$seen:got3
	mount_finds '"mount": "ok", "losses": [{"kind": "stale", "writer": 0, "file": 0, "block": 0, "op": 4, "got": 3}], "repair": null'
}

teardown()
{
	local left

	left=$(find jobs -mindepth 1 2> /dev/null)
	[ -z "$left" ] || echo "left: $left"
	[ -z "$left" ]
}

guest()
{
	cat <<- 'END'
		#!/bin/bash
		for arg; do case $arg in ACKPROOF_JOB=*) job=${arg#*=};; esac; done
		grep -o -- --repair "$job/command" > "$FOUND.options"
		while read -r point; do
			echo "{\"point\": $point, $(cat "$FOUND"), \"ms\": {}}"
		done < "$job/points" > "$job/points.jsonl"
		echo 0 > "$job/status"
	END
}

# A replay compares the image that the log leads to with this
record_data()
{
	"$built/bin/lwreplay" --size 1M lost/log image > out 2>&1
	jq --arg data "$(xxhsum -H2 < image | cut -d ' ' -f 1)" '.data_xxh128 = $data' \
		lost/capture.json > capture.json
	mv capture.json lost/
}

mount_finds()
{
	echo "$1" > found
}

reproduced()
{
	run -0 ackproof reproduce "$@"
	[ "${lines[-1]}" = reproduced ]
}

# $1 is what differs
not_reproduced()
{
	local what=$1

	shift
	run -1 ackproof reproduce "$@"
	echo "$output"
	[[ $output == *$'\n'"  $what"$'\n'* ]]
	[ "${lines[-1]}" = "not reproduced" ]
}

@test "the audit and the replay print the line that finds their loss again" {
	run -1 ackproof audit lost
	[ "${lines[-1]}" = "reproduce: ackproof reproduce $seen lost" ]
	reproduced "$seen" lost
	run -1 ackproof -q replay --points suspects lost
	[ "${lines[-1]}" = "reproduce: ackproof reproduce $token $PWD/lost" ]
	reproduced "$token" "$PWD/lost"
	[ "${lines[0]}" = "entry $at of capture $hash on odd $KERNEL" ]
	[ "${lines[1]}" = "  audit: stale:w0:f0:b0:op4" ]
	[ "${lines[2]}" = "  mount: stale:w0:f0:b0:op4:got3" ]
}

@test "JSON" {
	run -0 --separate-stderr ackproof reproduce --json "$token" lost
	jq -e --arg hash "$hash" --arg at "$at" '.reproduced and .capture == $hash and
		.point == ($at | tonumber) and .kernel == {variant: "odd",
			hash: "0123456789abcdef", own: true} and
		.expected == .mount and .audit == ["stale:w0:f0:b0:op4"] and
		.missing + .unexpected + .unconfirmed == []' <<< "$output"
	run -1 --separate-stderr ackproof reproduce --json "${token}1" lost
	jq -e '.reproduced == false and .missing == ["stale:w0:f0:b0:op4:got31"]' <<< "$output"
}

@test "a verdict that differs in anything is not reproduced" {
	local other

	for other in torn:w0:f0:b0:op4:got3 stale:w1:f0:b0:op4:got3 \
		stale:w0:f1:b0:op4:got3 stale:w0:f0:b1:op4:got3 \
		stale:w0:f0:b0:op3:got3 stale:w0:f0:b0:op4:got2 \
		stale:w0:f0:b0:op4:got-1 mount:Structure_needs_cleaning dirty; do
		not_reproduced "expected $other" "$hash@$at:$other" lost
	done
	# nor at another point: the audit has it lost from the ack on
	not_reproduced "expected stale:w0:f0:b0:op4" "$hash@$((at + 1)):stale:w0:f0:b0:op4" lost
	mount_finds '"mount": "ok", "losses": [], "repair": null'
	not_reproduced "expected stale:w0:f0:b0:op4:got3" "$token" lost
	[[ $output == *$'\n'"  mount: nothing lost"$'\n'* ]]
	# the audit's is there, but the mount does not bear it out
	not_reproduced "not confirmed by the mount: stale:w0:f0:b0:op4" "$seen" lost
}

@test "what does not mount, or is not clean" {
	mount_finds '"mount": "Structure needs cleaning", "losses": [], "repair": null'
	run -1 ackproof -q replay --points suspects lost
	[ "${lines[-1]}" = "reproduce: ackproof reproduce $hash@$at:mount:Structure_needs_cleaning $PWD/lost" ]
	reproduced "$hash@$at:mount:Structure_needs_cleaning" lost
	[ ! -s found.options ]
	mount_finds '"mount": "ok", "losses": [], "repair": "dirty"'
	reproduced "$hash@$at:dirty" lost
	[ "$(cat found.options)" = --repair ]
}

@test "a file of results: all that was found at a point counts" {
	run -1 ackproof -q replay --points 5@ack --output lost/points.jsonl lost
	[ "$(jq -r .capture lost/points.jsonl | sort -u)" = "$hash" ]
	reproduced lost/points.jsonl
	reproduced --loss 2 lost/points.jsonl
	[[ ${lines[0]} == "entry $(sed -n 2p lost/points.jsonl | jq .point) of "* ]]
	fails_with 2 "ackproof: --loss: 6, expected at most 5, as there are in lost/points.jsonl" \
		reproduce --loss 6 lost/points.jsonl
	mv lost/points.jsonl .
	usage_error "expected the capture of 'points.jsonl', or an archive of it; *" \
		reproduce points.jsonl
	reproduced points.jsonl lost
	mount_finds '"mount": "ok", "losses": [{"kind": "stale", "writer": 0, "file": 0, "block": 0, "op": 4, "got": 3},
		{"kind": "zero", "writer": 1, "file": 0, "block": 0, "op": 2, "got": -1}], "repair": null'
	not_reproduced "not expected zero:w1:f0:b0:op2:got-1" points.jsonl lost
	# a token names one of them
	reproduced "$token" lost
}

@test "a file that is none, or has no loss" {
	mount_finds '"mount": "ok", "losses": [], "repair": null'
	ackproof -q replay --points 5@ack --output points.jsonl lost
	fails_with 2 "ackproof: points.jsonl: no loss in it" reproduce points.jsonl lost
	echo '{"point": 3}' > x.jsonl
	fails_with 2 "ackproof: x.jsonl: not what 'replay --output' writes" reproduce x.jsonl lost
	echo 'point = 3' > x.jsonl
	fails_with 2 "ackproof: x.jsonl: not what 'replay --output' writes" reproduce x.jsonl lost
}

# A campaign's run as it is left: section one was as expected, two not
make_run()
{
	local dir

	for dir in run/one/1 run/two/2 run/two/10; do
		mkdir -p "${dir%/*}"
		cp -r lost $dir
		ackproof audit --json $dir > $dir/audit.json || :
		ackproof -q replay --points suspects --output $dir/points.jsonl $dir || :
		echo '{}' > $dir/unit.json
	done
	rm run/one/1/log
	mkdir run/two/1			# one that failed
	echo '[{"section": "one", "ok": true}, {"section": "two", "ok": false}]' \
		> run/summary.json
}

@test "a campaign's run: the section that was not as expected" {
	make_run
	reproduced run
	reproduced --loss 2 run
	fails_with 2 "ackproof: --loss: 3, expected at most 2, *" reproduce --loss 3 run
	# where no mount has found any, what the audit has found
	mount_finds '"mount": "ok", "losses": [], "repair": null'
	ackproof -q replay --points suspects --output run/two/2/points.jsonl run/two/2
	not_reproduced "not confirmed by the mount: stale:w0:f0:b0:op4" run
	fails_with 2 "ackproof: --section: no section 'none' in run" \
		reproduce --section none run
	fails_with 77 "ackproof: capture $hash is not here: run/one/1 has no log, *" \
		reproduce --section one run
	sed -i s/false/true/ run/summary.json
	fails_with 2 "ackproof: run: all was as expected: name a section with --section" \
		reproduce run
}

@test "another capture is refused" {
	"$built/tests/shell/mkcapture" other
	cp lost/capture.json other/
	fails_with 2 "ackproof: other is another capture: its log has hash *, expected $hash" \
		reproduce "$token" other
	# whatever it says of itself
	jq --arg hash "$hash" '.log_xxh128 = $hash' lost/capture.json > other/capture.json
	fails_with 2 "ackproof: other is another capture: *" reproduce "$token" other
}

@test "a capture that is not here: what to copy" {
	fails_with 77 "ackproof: capture $hash is not here: no /none; 'ackproof capture export' it where it is, and name the archive" \
		reproduce "$token" /none
}

@test "a kernel that is not here, or is another build: what to copy" {
	mv build/kernel kernel-before
	fails_with 77 "ackproof: the capture's kernel is not here, as $PWD/build/kernel/out/$KERNEL: 'ackproof capture export' *" \
		reproduce "$token" lost
	cp -r kernel-before build/kernel
	echo '# another' >> build/kernel/out/$KERNEL/linux
	fails_with 77 "ackproof: the capture's kernel is not here, *" reproduce "$token" lost
}

@test "on another kernel, a replay says so, and its line has that kernel" {
	local dir

	# one of that name that can be built
	mkdir -p source/{fs,drivers/md} patches/{variants,config}
	guest > source/fs/guest.c
	touch source/{Kconfig,fs/Kconfig}
	cp "$BATS_TEST_DIRNAME/kernel/Makefile" source/
	echo 'about odd' > patches/variants/odd
	touch patches/config/{common,um}.config
	export ACKPROOF_PATCHES=$PWD/patches
	dir=$(ackproof -q kernel path --source source odd)
	chmod 755 "$dir/linux"
	run -1 ackproof -q replay --points suspects --source source lost
	[ "${lines[1]}" = "  not on the kernel of the capture, but on odd ${dir##*/}" ]
	[ "${lines[-1]}" = "reproduce: ackproof replay --points $at --source $PWD/source $PWD/lost" ]
	run -1 ackproof -q replay --json --points suspects --source source lost
	jq -e --arg hash "${dir##*/}" '.kernel == {variant: "odd", hash: $hash, own: false}' <<< "$output"
	# and so it does where the capture's own is not there
	rm -r build/kernel/out/$KERNEL
	tar -cf linux.tar --transform 's,^source,linux-9.9,' source
	export ACKPROOF_TARBALL=$PWD/linux.tar
	dir=$(ackproof -q kernel path odd)
	chmod 755 "$dir/linux"
	run -1 ackproof -q replay --points suspects lost
	[ "${lines[1]}" = "  not on the kernel of the capture, but on odd ${dir##*/}" ]
	[ "${lines[-1]}" = "reproduce: ackproof replay --points $at $PWD/lost" ]
}

@test "an archive in the place of the capture, also where there is no kernel yet" {
	ackproof -q capture export lost lost.tar
	mkdir gone
	mv lost build/kernel gone
	reproduced "$token" lost.tar
	[ -x build/kernel/out/$KERNEL/linux ]
	[ ! -e lost ]
	not_reproduced "expected stale:w0:f0:b0:op4:got2" "$seen:got2" lost.tar
	head -c 5000 lost.tar > cut.tar
	fails_with 1 "ackproof: cut.tar: *" reproduce "$token" cut.tar
}

@test "usage" {
	local see="; see 'ackproof reproduce --help'" bad

	usage_error "expected a result$see" reproduce
	usage_error "one result and one capture only$see" reproduce a b c
	usage_error "unknown option '--none'$see" reproduce --none a
	usage_error "--loss: unknown, or needs an argument$see" reproduce "$token" --loss
	usage_error "--loss: '0' is not a number from 1 to *" reproduce --loss 0 "$token" lost
	usage_error "--timeout: 'x' is not a number from *" reproduce --timeout x "$token" lost
	usage_error "--section: '$token' is not the folder of a campaign's run$see" \
		reproduce --section one "$token" lost
	usage_error "expected the capture of '$token', or an archive of it$see" \
		reproduce "$token"
	usage_error "lost: not the folder of a campaign's run: no summary.json in it" \
		reproduce lost
	for bad in none "$hash" "$hash@$at" "$hash@$at:" "$hash@x:dirty" "$hash@$at:dirty:w1" \
		"${hash:1}@29:dirty" "$hash@$at:stale:w0:f0:b0" "$token;ls" "$hash@029:dirty"; do
		usage_error "'$bad' is no token, no file and no folder: see *" \
			reproduce "$bad" lost
	done
	fails_with 2 "lwpoints: *999999*" reproduce "$hash@999999:dirty" lost
}
