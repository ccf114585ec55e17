#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards campaigns on real kernels: the results, expectations in both directions,
# noise, and that a run that was killed, or whose disk was full, ends like one that
# was not.

load helpers

setup()
{
	e2e_setup
	small=(campaign --set captures=2 --set fsyncs=120 --set points=4@ack
		--set "delay=2,1" --set early-snapshot.fsyncs=300 --set expect_replays_lost=0 --set expect_skipped=0
		--set early-snapshot.suspects=6 --set series-unfixed-dm.suspects=6)
}

teardown()
{
	[ ! -d disk ] || umount disk || :
}

latest()
{
	echo "$ACKPROOF_RESULTS/$(cat "$ACKPROOF_RESULTS/latest")"
}

# What two runs of the same captures have in common
covered()
{
	jq -c '.[] | [.section, .seed, .captures, .failed, .planned, .fsyncs,
		.acks_lost, .replays, .replays_lost, .ok]' "$1/summary.json"
	jq -c '[.nr, .seed, .fsyncs, .replays]' "$1"/*/*/unit.json
}

@test "as expected: the table, the summary and latest" {
	ackproof -q "${small[@]}" --section series --section early-snapshot 528 > table
	cat table
	[ "$(awk '$1 == "series" { print $2, $3, $6, $7, $8, $12 }' table)" = '2/2 1920 0 8 0 yes' ]
	grep -qE '^posted +- +48048 +33257 ' table
	cmp table "$(latest)/table"
	jq -e '.[0].ok and .[0].skipped_exact >= .[0].skipped_min and
		.[1].acks_lost > 0 and .[1].suspects > 0 and
		.[1].suspects == .[1].suspects_confirmed' "$(latest)/summary.json"
	xmllint --noout "$(latest)/result.xml"
	[ -z "$(ls "$ACKPROOF_JOBS")" ]
}

@test "a losing kernel that is expected to be clean fails, and can be reproduced" {
	run -1 ackproof -q "${small[@]}" --section early-snapshot \
		--set early-snapshot.expect=clean 528
	[[ $output == *"early-snapshot: not as expected: "*" acks lost, expected none"* ]]
	line=$(grep -o 'ackproof reproduce .*' <<< "$output")
	# shellcheck disable=SC2086 # a command line
	ackproof -q ${line#ackproof }
	# and so do the results as a whole
	ackproof -q reproduce --loss 2 "$(latest)"
}

@test "the other expectations fail by name, too" {
	run -1 ackproof -q "${small[@]}" --section series --set expect=any --set captures=1 \
		--set expect_skipped=100 --set expect_replays_lost=1 528
	[[ $output == *"series: not as expected: "*"0 replays with loss, expected at least 1"* ]]
	[[ $output == *"skipped >= "*", expected at least 100 %"* ]]
}

@test "a section whose captures fail is not taken for clean" {
	run -1 ackproof -q "${small[@]}" --section series --set series.log_disk=20m 528
	[[ $output == *"series: not as expected: 2 of 2 captures failed: "*"log device is full"* ]]
}

@test "a guest that hangs is tried again, and reported as that" {
	run -1 ackproof -q "${small[@]}" --section series --set captures=1 --set timeout=2 \
		--set fsyncs=5000 528
	echo "$output"
	[[ $output == *"series: not as expected: 1 of 1 captures failed: hang: no end after 2 s (at first: hang: no end after 2 s)"* ]]
	[ -s "$(latest)/series/1/console" ]
	[ -z "$(ls "$ACKPROOF_JOBS")" ]
}

@test "noise: the audit and the mounts are as exact with it, in both directions" {
	ackproof -q "${small[@]}" --section series --section early-snapshot --set captures=1 \
		--set 'matrix.noise=noise-append.fio noise-mixed.fio' 528
	jq -e 'length == 4 and all(.ok)' "$(latest)/summary.json"
	jq -se 'length == 4 and all(.noise.sha256 | test("^[0-9a-f]{64}$"))' \
		"$(latest)"/*/*/1/capture.json
	sed -n '/^{/,$p' "$(latest)"/series/noise=noise-append_fio/1/noise.json |
		jq -e 'all(.jobs[]; .error == 0 and .write.total_ios > 0)'
}

@test "noise that fails, or ends before the writers, fails the capture" {
	printf '%s\n' '[a]' 'rw=write' 'size=4g' 'bs=1m' > large.fio
	run -1 ackproof -q capture --fsyncs 5000 --delay 0,0 --noise large.fio a
	echo "$output"
	[[ $output == *"noise: fio failed with status "*[Nn]"o space left on device"* || $output == *"No space left on device"* ]]
	printf '%s\n' '[a]' 'rw=write' 'size=4k' > short.fio
	run -1 ackproof -q capture --fsyncs 200 --delay 1,1 --noise short.fio a
	[[ $output == *"noise: fio ended before the writers did"* ]]
	printf '%s\n' '[a]' 'rw=wriet' > wrong.fio
	run -1 ackproof -q capture --fsyncs 20 --delay 0,0 --noise wrong.fio a
	[[ $output == *"noise: fio failed with status 1: "*wriet* ]]
	[ ! -e a ]
}

@test "a run killed at random moments leaves no process, and ends like one that was not" {
	local started=${EPOCHREALTIME/./} whole i
	local set=(--set suspects=0 --set early-snapshot.expect=any --set early-snapshot.fsyncs=120)

	ackproof -q "${small[@]}" --section series --section early-snapshot "${set[@]}" 528
	whole=$((${EPOCHREALTIME/./} - started))
	covered "$(latest)" > whole
	run=$(cat "$ACKPROOF_RESULTS/latest")
	for ((i = 0; i < 3; i++)); do
		setsid "$top/harness/ackproof" -q "${small[@]}" --section series \
			--section early-snapshot "${set[@]}" 528 > out 2>&1 3>&- &
		pid=$!
		sleep $((whole / 10 + RANDOM * (whole / 5) / 32768))e-6
		kill -KILL $pid
		nothing_left
		wait $pid || :
		find "$ACKPROOF_JOBS" -name unit.json -exec sha256sum {} + | sort > ended.$i
	done
	ackproof -q "${small[@]}" --section series --section early-snapshot "${set[@]}" 528
	[ "$(cat "$ACKPROOF_RESULTS/latest")" != "$run" ]
	# how many acks the mutant loses is not of the seed alone
	covered "$(latest)" | sed -E 's/^(\["early-snapshot".*,)[0-9]+(,8,)[0-9]+/\1x\2x/' |
		diff <(sed -E 's/^(\["early-snapshot".*,)[0-9]+(,8,)[0-9]+/\1x\2x/' whole) -
	# what had ended is in the results as it was
	while read -r sum _; do
		sha256sum "$(latest)"/*/*/unit.json | grep -q "^$sum"
	done < <(cat ended.*)
}

@test "a full disk stops it, and the same command goes on" {
	[ "$(id -u)" -eq 0 ] || skip "only root can mount a small disk"
	mkdir disk
	mount -t tmpfs -o size=420m none disk 2> /dev/null || skip "no tmpfs can be mounted here"
	export ACKPROOF_JOBS=$PWD/disk
	run=("${small[@]}" -j 1 --section series 528)
	(
		# it is filled while the first one is recorded
		until [ -e disk/campaign-528/run/units/1 ]; do sleep 0.05; done
		head -c 380m /dev/zero > disk/fill 2> /dev/null
	) 3>&- &
	run -77 ackproof -q "${run[@]}"
	wait
	echo "$output"
	[[ $output == *"stopped: no space: "*"the same command goes on from here" ]]
	rm disk/fill
	ackproof -q "${run[@]}"
	jq -e '.[0].ok and .[0].captures == 2 and .[0].failed == 0' "$(latest)/summary.json"
	[ -z "$(ls disk)" ]
}
