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

lwlog()
{
	"$ACKPROOF_BUILD/bin/lwlog" "$@"
}

# record VARIANT OPTION...
record()
{
	local variant=$1

	shift
	ackproof -q capture --variant "$variant" --fsyncs 300 "$@" capture
}

@test "a flush snapshot taken too early: the flush was submitted early" {
	record early-snapshot --delay 2,1
	explain_four submitted-early capture
	# a flush is named, and it is one that does not cover the write
	jq -e '[.flushes[] | select(.named)] | length == 1 and
		.[0].relation == "early" and .[0].completed_ms < 0' explained
}

@test "the log's flush reported to mere waiters: submitted early, by the journal" {
	record log-flushed-by-waiter --delay 2,1
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
	ackproof -q capture --variant series-unfixed-dm --delay 2,1 capture
	explain_four taken-by-another capture
	jq -e '(.flushes[] | select(.named) | .relation == "covers" and
		.entry > .point) or true' explained
	jq -e '.logged_with_flush > ([.flushes[] | select(.named)][0].entry)' explained
}

@test "no wait for the log: the data are in time, what leads to them is not" {
	local point

	record no-log-wait --mode append
	# the audit cannot see this one
	ackproof audit capture
	ackproof -q replay --points 12@ack --json capture > replayed || [ $? -eq 1 ]
	point=$(jq .failed[0].point replayed)
	ackproof -q explain --json capture "$point" > explained
	jq -e --argjson point "$point" '.cause == "metadata-late" and
		.point == $point and .writes == [] and
		.written_in_time < .loss.ack_entry and
		.journal_after.entry > $point and .minimal.lost and
		(.minimal.entries | length | . >= 1 and . <= 3)' explained ||
		{ cat explained; return 1; }
	run -0 ackproof -q reproduce "$(jq -r .token explained)" capture
	# it takes the journal's record with the new size
	jq -e '.journal_after.entry as $e | .minimal.entries | any(. >= $e)' explained
}

@test "a state that is not mounted: entries that make it so, however many" {
	local file entry offset begin

	ackproof -q capture --fsyncs 100 capture
	file=capture/log
	# mkfs writes the superblock last, and unmounting writes it again
	read -r entry offset < <(lwlog list --json --sectors 0 --flags write --to 10400 \
		$file | jq -rs '.[-1] | "\(.entry) \(.offset)"')
	flip $file $((offset + 512 + 40))
	begin=$(lwlog find --mark 'begin:*' --json $file | jq -s '.[0].entry')
	ackproof -q explain --json capture "$begin" > explained
	# the clean superblock goes with all that the journal has had: the search ends
	jq -e --argjson begin "$begin" --argjson supers "$(lwlog list --json --sectors 0 \
		--flags write --from "$begin" $file | jq -s 'map(.entry)')" '
		.cause == "not-mounted" and .point == $begin and
		(.minimal | .smallest == (.trials < 400) and
			.entries[0] > $begin and .entries - $supers != .entries)' explained ||
		{ jq -c . explained; return 1; }
	run -0 ackproof -q explain capture "$begin"
	[[ ${lines[0]} == "the state at entry $begin is not mounted: "* ]]
	[[ ${lines[1]} == *' set of entries with which it is: '* ]]
	# shellcheck disable=SC2086 # its words
	run -0 ackproof -q ${lines[2]#reproduce: ackproof }
	[ "${lines[-1]}" = reproduced ]
	# what is no state of the run is not looked at
	run -2 ackproof -q explain capture "$entry"
	[[ $output == *"entry $entry is not between the run's marks"* ]]
}

@test "a state at which nothing is lost is exit status 2" {
	local begin

	ackproof -q capture --fsyncs 20 capture
	begin=$(lwlog find --mark 'begin:*' --json capture/log |
		jq -s '.[0].entry')
	run -2 ackproof -q explain capture "$begin"
	[[ $output == "ackproof: entry $begin: nothing is lost there, by the audit and by a mount" ]]
}

@test "the story in time order, the picture, and the line that reproduces it" {
	local line

	record early-snapshot --delay 2,1
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
	# shellcheck disable=SC2086 # its words
	run -0 ackproof -q $line
	[ "${lines[-1]}" = reproduced ]
}

@test "a capture of an older kernel has no trace: told from the log alone" {
	record early-snapshot --delay 2,1
	rm capture/trace
	ackproof -q explain --json capture > explained
	jq -e '.cause == "unknown" and (.capture_wide.traced | not) and
		(.minimal.entries | length) == 1 and (.flushes | length) > 0' explained
}

@test "a trace at fault is named with its line and byte" {
	record early-snapshot --delay 2,1
	sed -i '20s/dm_log_writes/dm_log_reads/' capture/trace
	run -1 ackproof -q explain capture
	[[ $output == *"capture/trace: line 20 at byte "*": expected an event of dm_log_writes" ]]
}
