#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the verdicts: each kernel bug is caught by the audit in one capture
# and confirmed by mounted states, and clean kernels are silent.

load helpers

setup()
{
	e2e_setup
}

# caught VARIANT: it loses acks, and mounts confirm every suspect replayed
# With long writes and flushes, the writers can fall into step, and lose nothing.
caught()
{
	ackproof -q capture --fsyncs 300 --delay 2,1 --variant "$1" capture
	run -1 ackproof audit --json capture
	jq -e '.acks_lost > 0' <<< "$output"
	jq '[.losses[] | {point: .from_entry, block: "\(.writer)/\(.file)/\(.block)"}]' \
		<<< "$output" > lost.json
	run -1 ackproof -q replay --points 12@suspects --output points.jsonl capture
	jq -se --slurpfile lost lost.json 'length > 0 and all(. as $r |
		[$lost[0][] | select(.point == $r.point) | .block] -
		[$r.losses[] | "\(.writer)/\(.file)/\(.block)"] == [])' points.jsonl
}

silent()
{
	ackproof -q capture --variant "$1" --fsyncs 300 capture
	ackproof audit capture
	ackproof -q replay --points 12@ack capture
}

@test "early-snapshot is caught" { caught early-snapshot; }
@test "no-own-flush is caught" { caught no-own-flush; }
@test "no-data-wait is caught" { caught no-data-wait; }
@test "log-flushed-by-waiter is caught" { caught log-flushed-by-waiter; }
@test "series-unfixed-dm shows false losses" { caught series-unfixed-dm; }
@test "stock shows false losses" { caught stock; }
@test "series is silent" { silent series; }
@test "stock-dmfix is silent" { silent stock-dmfix; }

# The data are stable: that the size is not, only recovery shows
@test "no-log-wait is caught by mounting its appends" {
	ackproof -q capture --variant no-log-wait --mode append --fsyncs 300 capture
	ackproof audit capture
	ackproof -q replay --points 12@ack --json capture > replayed || [ $? -eq 1 ]
	jq -e '.replays_lost > 0' replayed
}

@test "appends cannot show an early snapshot" {
	ackproof -q capture --variant early-snapshot --mode append --fsyncs 300 capture
	ackproof audit capture
}
