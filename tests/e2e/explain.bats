#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards `ackproof explain` on real kernels: for the losses of kernels whose bug is
# known, the cause that it tells is that bug, and the smallest set of entries that
# brings a block back is small and real.

load helpers

setup()
{
	e2e_setup
}

# explain_four CAUSE CAPTURE: four losses, from all over the capture
explain_four()
{
	local cause=$1 capture=$2 ack n=0

	for ack in $("$ACKPROOF_BUILD/bin/lwaudit" --json "$capture" |
		jq -r '.losses | . as $l | length as $n | range(4) |
			$l[. * $n / 4 | floor] | "\(.writer)/\(.op)"'); do
		ackproof -q explain --json "$capture" "$ack" > explained
		jq -e --arg ack "$ack" --arg cause "$cause" '
			"\(.loss.writer)/\(.loss.op)" == $ack and
			.cause == $cause and .minimal.lost and
			(.minimal.entries | length | . >= 1 and . <= 3) and
			.minimal.entries[0] > .point' explained ||
			{ cat explained; return 1; }
		n=$((n + 1))
	done
	[ $n -eq 4 ]
}

# record VARIANT OPTION...
record()
{
	local variant=$1

	shift
	ackproof -q capture --variant "$variant" --fsyncs 300 "$@" capture
}

@test "a flush snapshot taken too early: the flush was submitted early" {
	record early-snapshot --delay 1,1
	explain_four submitted-early capture
	# a flush is named, and it is one that does not cover the write
	jq -e '[.flushes[] | select(.named)] | length == 1 and
		.[0].relation == "early" and .[0].completed_ms < 0' explained
}

@test "the log's flush reported to mere waiters: submitted early, by the journal" {
	record log-flushed-by-waiter
	explain_four submitted-early capture
	jq -e '[.flushes[] | select(.named and .journal_entry != null)] |
		length == 1' explained
}

@test "no wait for the data: the write was not awaited" {
	record no-data-wait
	explain_four write-not-awaited capture
}

# With fsync, each overwrite logs a timestamp, and waits for a journal write whose
# preflush is early: fdatasync waits for nothing.
@test "no flush of its own: never sent" {
	record no-own-flush --sync fdatasync
	explain_four never-sent capture
	jq -e '.capture_wide.own_flushes == 0' explained
}

@test "a dm-log-writes without the fix: another flush took the write" {
	ackproof -q capture --variant series-unfixed-dm --delay 1,1 capture
	explain_four taken-by-another capture
	jq -e '(.flushes[] | select(.named) | .relation == "covers" and
		.entry > .point) or true' explained
	jq -e '.logged_with_flush > ([.flushes[] | select(.named)][0].entry)' explained
}

@test "the story in time order, the picture, and the line that reproduces it" {
	local line

	record early-snapshot --delay 1,1
	ackproof explain --plot loss.svg capture > text
	grep -q '^cause: submitted-early$' text
	grep -qE '^smallest set of entries that brings the block back: [0-9]+$' text
	# times ascend, and the ack is at 0
	awk '/^ +MS/ { t = 1; next } t && /^$/ { exit } t && $1 != "-" {
		if (n++ && $1 < last) exit 1
		last = $1
		if (/ACK/) ack = $1 == 0 }
		END { exit !(ack && n > 4) }' text
	grep -qE 'journal record [0-9]+:[0-9]+ with inode [0-9]+ submitted' text
	head -c 200 loss.svg | grep -q '<svg'
	grep -q 'writer' loss.svg
	line=$(sed -n 's/^reproduce: ackproof //p' text)
	run -1 ackproof -q $line
	[[ $output == *'blocks lost'* ]]
}

@test "a capture of an older kernel has no trace: told from the log alone" {
	record early-snapshot --delay 1,1
	rm capture/trace
	ackproof -q explain --json capture > explained
	jq -e '.cause == "unknown" and (.capture_wide.traced | not) and
		(.minimal.entries | length) == 1 and (.flushes | length) > 0' explained
}

@test "a trace at fault is named with its line and byte" {
	record early-snapshot --delay 1,1
	sed -i '20s/dm_log_writes/dm_log_reads/' capture/trace
	run -1 ackproof -q explain capture
	[[ $output == *"capture/trace: line 20 at byte "*": expected an event of dm_log_writes" ]]
}
