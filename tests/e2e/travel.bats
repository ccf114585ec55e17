#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards failures that travel: what one machine has found, another one finds
# again, that has only the archive and the line that reported it.

load helpers

setup_file()
{
	ACKPROOF_JOBS=$BATS_FILE_TMPDIR/jobs ackproof -q capture \
		--variant early-snapshot --fsyncs 300 --delay 2,1 \
		"$BATS_FILE_TMPDIR/early"
}

setup()
{
	e2e_setup
	early=$BATS_FILE_TMPDIR/early
}

# From here on, a machine that has the tools, and nothing that was built or run
other_machine()
{
	mkdir other
	ln -s "$ACKPROOF_BUILD/bin" other/bin
	export ACKPROOF_BUILD=$PWD/other ACKPROOF_JOBS=$PWD/other/jobs
	export ACKPROOF_RESULTS=$PWD/other/results
	export ACKPROOF_PATCHES=$PWD/other/none ACKPROOF_TARBALL=$PWD/other/none
	mv "$early" away
}

teardown()
{
	[ ! -d away ] || mv away "$early"
}

# The token of the last report
token()
{
	local line=${lines[-1]#reproduce: ackproof reproduce }

	[ "$line" != "${lines[-1]}" ]
	echo "${line%% *}"
}

@test "a loss of the audit, and one of a mount, from one machine to another" {
	run -1 ackproof audit "$early"
	audited=$(token)
	run -1 ackproof -q replay --points 8@suspects --output points.jsonl "$early"
	replayed=$(token)
	cp "$early/log" log
	audit=$(ackproof audit --json "$early" | jq 'del(.seconds)') || :
	ackproof -q capture export "$early" early.tar

	other_machine
	run -77 ackproof -q reproduce "$replayed" "$early"
	ackproof -q capture import early.tar early
	cmp -n "$(stat -c %s early/log)" log early/log
	[ "$(ackproof audit --json early | jq 'del(.seconds)')" = "$audit" ]
	for result in "$audited" "$replayed" points.jsonl; do
		run -0 ackproof -q reproduce "$result" early
		[ "${lines[-1]}" = reproduced ]
	done
	# as many times as one likes, all points, and no other result of them
	ackproof -q replay --points 8@suspects --output again.jsonl early || :
	[ "$(jq -c 'del(.ms)' again.jsonl)" = "$(jq -c 'del(.ms)' points.jsonl)" ]
	nothing_left
	[ -z "$(ls "$ACKPROOF_JOBS")" ]
}

@test "the archive alone will do, and another verdict is not reproduced" {
	run -1 ackproof -q replay --points suspects "$early"
	token=$(token)
	ackproof -q capture export "$early" early.tar

	other_machine
	run -0 ackproof -q reproduce "$token" early.tar
	[ "${lines[-1]}" = reproduced ]
	run -1 ackproof -q reproduce "${token%:got*}:got299" early.tar
	[ "${lines[-1]}" = "not reproduced" ]
	run -1 ackproof -q reproduce "$(sed 's/:w/:w1/' <<< "$token")" early.tar
	[ "${lines[-1]}" = "not reproduced" ]
	# the ack before has lost nothing of it yet
	point=${token#*@}
	point=$((${point%%:*} - 1))
	run -1 ackproof -q reproduce "${token%%@*}@$point:${token#*:}" early.tar
	[ "${lines[-1]}" = "not reproduced" ]
	[ -z "$(ls "$ACKPROOF_JOBS")" ]
}

@test "without its kernel, nothing else is mounted in its place" {
	run -1 ackproof -q replay --points 1@suspects "$early"
	token=$(token)
	# where it was recorded, that kernel is gone
	mkdir gone
	ln -s "$ACKPROOF_BUILD/bin" gone/bin
	ACKPROOF_BUILD=$PWD/gone run -0 ackproof capture export "$early" early.tar
	[[ $output == "without its kernel, "* ]]

	other_machine
	run -77 ackproof -q reproduce "$token" early.tar
	[[ $output == *"the capture's kernel is not here, "* ]]
}
