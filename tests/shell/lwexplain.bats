#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards lwexplain and what `ackproof explain` says before it needs a kernel, on
# captures made by hand.

load lib

setup()
{
	own_folder
	mkcapture lost loss
	mkcapture whole
}

lwexplain()
{
	"$built/bin/lwexplain" "$@"
}

mkcapture()
{
	"$built/tests/shell/mkcapture" "$@"
}

@test "a loss without a trace: the log's side of it" {
	run -0 lwexplain lost
	[ "${lines[0]}" = 'lost: w0/f0 block 0, stale: operation 4 of writer 0, acknowledged at entry 26' ]
	[[ $output == *'cause: unknown'* ]]
	[[ $output == *'FLUSH logged'* ]]
	[[ ${lines[-1]} =~ ^'reproduce: ackproof reproduce '[0-9a-f]{32}'@26:stale:w0:f0:b0:op4 lost'$ ]]
}

@test "the loss by its ack, by its entry, and by an entry where it is there" {
	for what in 0/4 26 27; do
		run -0 lwexplain --json lost $what
		jq -e '.loss.op == 4 and .loss.ack_entry == 26 and .point == 26 and
			.cause == "unknown" and .minimal == null' <<< "$output"
	done
}

@test "what is lost nowhere is exit status 2" {
	run -2 lwexplain whole
	[[ $output == *'whole: nothing is lost, by the audit' ]]
	run -2 lwexplain lost 1/4
	[[ $output == *'operation 1/4: its blocks are not lost' ]]
	run -2 lwexplain lost 20
	[[ $output == *'entry 20: the audit knows of no loss there' ]]
	run -2 lwexplain lost nonsense
	[[ $output == *"'nonsense': expected WRITER/OPERATION or an entry's number" ]]
	run -2 ackproof explain whole
	[[ $output == *'whole: nothing is lost, by the audit' ]]
	[ ! -e "$ACKPROOF_JOBS" ] || [ -z "$(ls "$ACKPROOF_JOBS")" ]
}

@test "wrong usage is exit status 2" {
	run -2 lwexplain
	run -2 lwexplain lost 1 2
	run -2 lwexplain --frobnicate lost
	run -2 ackproof explain
	run -2 ackproof explain lost 1 2
	run -2 ackproof explain --plot picture.gif lost
	[[ $output == *"--plot: 'picture.gif', expected FILE.svg or FILE.png"* ]]
	run -2 ackproof explain nowhere
	[[ $output == *'nowhere: no such capture' ]]
}

@test "a log, a trace or a file of inodes at fault is exit status 1" {
	echo nonsense > lost/trace
	run -1 lwexplain lost
	[[ $output == *'lost/trace: line 1 at byte 0: expected an event of dm_log_writes' ]]
	rm lost/trace
	echo nonsense > lost/inodes
	run -1 lwexplain lost
	[[ $output == *"lost/inodes: line 1: expected 'wWRITER/fFILE INODE'" ]]
	rm lost/inodes
	mkcapture cut cut-header
	run -1 lwexplain cut
}

@test "without a trace there is nothing to plot" {
	run -2 lwexplain --gnuplot lost
	[[ $output == *'lost: without a trace there are no times to plot' ]]
}

@test "what a full disk takes is no success" {
	run -1 bash -c '"$1" lost > /dev/full' - "$built/bin/lwexplain"
	[[ $output == *'cannot write to stdout: No space left on device' ]]
}
