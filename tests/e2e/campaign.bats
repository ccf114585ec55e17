#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards campaigns: the table and its summary, expectations in both directions,
# and that a killed run leaves nothing behind.

load helpers

setup()
{
	e2e_setup
	small=(campaign 528)
	for section in series early-snapshot series-unfixed-dm; do
		small+=(--set "$section.captures=2" --set "$section.fsyncs=120"
			--set "$section.points=4@ack" --set "$section.delay=5,4"
			--set "$section.expect_replays_lost=0"
			--set "$section.expect_skipped=0")
	done
	# with long writes and flushes, the writers can fall into step, and lose nothing
	small+=(--set "early-snapshot.delay=1,1" --set early-snapshot.suspects=6
		--set series-unfixed-dm.suspects=6)
}

@test "as expected: the table, the summary and latest" {
	ackproof -q "${small[@]}" --section series --section early-snapshot > table
	cat table
	[ "$(awk '$1 == "series" { print $2, $5, $6, $7, $11 }' table)" = '1920 0 8 0 yes' ]
	grep -qE '^posted +48048 +33257 ' table
	run=$ACKPROOF_RESULTS/$(cat "$ACKPROOF_RESULTS/latest")
	cmp table "$run/table"
	jq -e 'length == 2 and all(.[]; keys - ["why"] == (["section", "variant",
		"fsyncs", "skipped_min", "skipped_exact", "acks_lost",
		"replays", "replays_lost", "suspects", "suspects_confirmed",
		"seconds", "expected", "ok"] | sort))' "$run/summary.json"
	jq -e '.[0].ok and .[0].skipped_exact >= .[0].skipped_min and
		.[1].acks_lost > 0 and .[1].suspects > 0 and
		.[1].suspects == .[1].suspects_confirmed' "$run/summary.json"
	[ -z "$(ls "$ACKPROOF_JOBS")" ]
}

@test "a clean kernel that is expected to lose fails, by name" {
	run -1 ackproof -q "${small[@]}" --section series --set series.expect=loss
	[[ $output == *"series: not as expected: no acks lost, expected some"* ]]
}

@test "a losing kernel that is expected to be clean fails, and can be reproduced" {
	run -1 ackproof -q "${small[@]}" --section early-snapshot \
		--set early-snapshot.expect=clean
	[[ $output == *"early-snapshot: not as expected: "*" acks lost, expected none"* ]]
	line=$(grep -o 'ackproof reproduce .*' <<< "$output")
	# shellcheck disable=SC2086 # a command line
	ackproof -q ${line#ackproof }
	# and so do the results as a whole
	run=$ACKPROOF_RESULTS/$(cat "$ACKPROOF_RESULTS/latest")
	ackproof -q reproduce --loss 2 "$run"
}

@test "the other expectations fail by name, too" {
	run -1 ackproof -q "${small[@]}" --section series \
		--set series.expect_skipped=100 --set series.expect_replays_lost=1
	[[ $output == *"series: not as expected: "*"0 replays with loss, expected at least 1"* ]]
	[[ $output == *"skipped >= "*", expected at least 100 %"* ]]
}

@test "a section whose captures fail is not taken for clean" {
	run -1 ackproof -q "${small[@]}" --section series --set series.log_disk=20m
	[[ $output == *"series: not as expected: 2 of 2 captures failed: "*"log device is full"* ]]
}

@test "a run killed at any moment leaves nothing, and the next one ends right" {
	local started=${EPOCHREALTIME/./} whole tenths

	ackproof -q "${small[@]}" --section series
	whole=$((${EPOCHREALTIME/./} - started))
	run=$(cat "$ACKPROOF_RESULTS/latest")
	for tenths in 1 3 5 8; do
		setsid "$top/harness/ackproof" -q "${small[@]}" --section series \
			> out 2>&1 3>&- &
		pid=$!
		sleep $((whole * tenths / 10))e-6
		kill -KILL $pid
		nothing_left
		wait $pid || :
	done
	[ "$(cat "$ACKPROOF_RESULTS/latest")" = "$run" ]
	ackproof -q "${small[@]}" --section series
	[ "$(cat "$ACKPROOF_RESULTS/latest")" != "$run" ]
	ackproof clean
	[ -z "$(ls "$ACKPROOF_JOBS")" ]
}
