#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards ackproof bisect log on real captures: what it says is what a replay of
# every state around it says, and what the audit says.

load helpers

setup_file()
{
	export ACKPROOF_JOBS=$BATS_FILE_TMPDIR/jobs
	ackproof -q capture --variant early-snapshot --fsyncs 300 --delay 2,1 \
		"$BATS_FILE_TMPDIR/lossy"
	ackproof -q capture --variant series --fsyncs 100 --delay 1,1 \
		"$BATS_FILE_TMPDIR/clean"
}

setup()
{
	e2e_setup
	lossy=$BATS_FILE_TMPDIR/lossy
	clean=$BATS_FILE_TMPDIR/clean
}

# Is all that FILTER says of report.json true?
says()
{
	jq -e "$@" report.json > /dev/null || {
		cat report.json
		return 1
	}
}

bisect()
{
	run --separate-stderr -"$1" ackproof bisect log --json "${@:2}"
	# shellcheck disable=SC2154 # bats sets it
	[ -z "$stderr" ]
	echo "$output" > report.json
}

@test "a lossy capture: a linear scan finds the same" {
	local first last

	bisect 1 "$lossy"
	says '.checks <= 60 and .heals and .first_bad.proven and .first_bad.good_before >= 8 and
		.first_bad.entry == .audit[0].first and .suspects_checked > 0'
	# proven edges are edges of the audit; what was not looked at between them may
	# hold good states, so it is one window of the audit if nothing was left out
	says '(.bad | map(select(.first_proven and .last_proven))) as $proven |
		($proven | length) > 2 and ($proven | map(.first)) - (.audit | map(.first)) == [] and
		($proven | map(.last)) - (.audit | map(.last)) == [] and
		($proven | map(select(.gap == null) | {first, last})) - .audit == []'
	first=$(jq '.first_bad.entry - 10' report.json)
	last=$(jq '[.bad[] | select(.first_proven and .last_proven)][2].last + 3' report.json)
	run -1 ackproof -q replay --output points.jsonl \
		--points "$(seq -s , "$first" "$last")" "$lossy"
	# each state there is lost if and only if it is in a window
	says --slurpfile points points.jsonl '.audit as $windows | $points | length > 13 and
		all(.point as $p | (.losses != []) ==
			any($windows[]; .first <= $p and $p <= .last))'
	# and a window that was proven has nothing beside it
	says --slurpfile points points.jsonl '[.bad[] | select(.first_proven and .last_proven)][:3] |
		[.[] | .first - 1, .last + 1] | unique as $good |
		$points | map(select(.point as $p | $good | index($p))) |
		length == ($good | length) and all(.losses == [])'
	# the line that is printed shows it again
	run -1 ackproof bisect log "$lossy"
	line=$(grep '^reproduce: ackproof reproduce ' <<< "$output")
	# shellcheck disable=SC2086,SC2154 # its words; bats sets it
	run -0 ackproof ${line#reproduce: ackproof }
	[ "${lines[-1]}" = reproduced ]
	# on another kernel it is no result of the capture's
	run -1 ackproof bisect log --variant early-snapshot --budget 8 "$lossy"
	[[ ${lines[-1]} == "reproduce: ackproof replay --variant early-snapshot --points "* ]]
}

@test "all states of a part: the windows are the audit's" {
	local first last

	bisect 1 "$lossy"
	first=$(jq '.audit[0].first - 5' report.json)
	last=$(jq '.audit[2].last + 5' report.json)
	bisect 1 --exhaustive --from "$first" --to "$last" "$lossy"
	says '.all_checked and .checks == .points and (.bad | map({first, last})) == .audit'
	says --argjson first "$first" --argjson last "$last" '.from == $first and .to == $last'
}

@test "a clean capture: nothing, and what may be missed is told" {
	bisect 0 --check builtin --budget 20 "$clean"
	says '.checks == 20 and .bad == [] and .first_bad == null and .audit == [] and
		.good[0].gap.points > 0 and .reproduce == null'
	run -0 ackproof bisect log --check mount --budget 5 "$clean"
	[[ $output == *" 5 checked: 0 bad windows"* ]]
	[[ $output == *"would be missed: a bad window of up to "* ]]
}

@test "a command on the images" {
	local middle

	middle=$(($("$top/build/bin/lwpoints" "$clean" mark | sed -n 40p) + 1))
	# an image of XFS, and bad from one entry on
	# shellcheck disable=SC2016 # it is for the command
	bisect 1 --check '[ "$(head -c 4 "$LWREPLAY_TARGET")" = XFSB ] || exit 127
		[ "${LWREPLAY_POINT#entry }" -lt '$middle' ]' "$clean"
	says --argjson middle "$middle" '.checks <= 60 and (.heals | not) and
		.first_bad.proven and .first_bad.entry >= $middle'
	says --argjson middle "$middle" '.first_bad.entry - $middle < 20'
	[ -z "$(ls "$ACKPROOF_JOBS")" ]
	run -0 ackproof bisect log --check true --budget 3 "$clean"
	run --separate-stderr -77 ackproof bisect log --check /none "$clean"
	[[ $stderr == *"lwbisect: entry "*": '/none' gives no verdict: exit status 127"* ]]
}
