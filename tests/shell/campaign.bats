#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the runs of campaigns: one queue, retries, budgets, what is kept, going on
# after a kill, and every form of the results. Captures and replays boot nothing:
# see fake_guests.

load lib

setup()
{
	own_folder
	fake_guests
	cat > file <<- 'END'
		[one]
		variant = series
		captures = 2
		seed = 1
		writers = 2
		fsyncs = 5
		points = 3@ack
		suspects = 4
		expect = clean

		[two]
		variant = early-snapshot
		expect = loss
	END
}

# A copy of the harness. A capture has a loss if its variant is a mutant. Before
# that, and before a replay, it does what the file hook says, if there is one; the
# file steps gets a line for each.
fake_guests()
{
	mkdir root
	cp -r "$top/harness" root/
	ln -s "$top/kernel-patches" "$top/workloads" root/
	export MKCAPTURE=$built/tests/shell/mkcapture STEPS=$PWD/steps HOOK=$PWD/hook
	: > steps
	cat >> root/harness/lib/kernel.sh <<- 'END'
		kernel_build()
		{
			kernel_dir=$ACKPROOF_BUILD/kernel/out/$(printf '%s' "$1" | sha256sum | cut -c 1-16)
			# shellcheck disable=SC2034
			variant=$1
		}
	END
	cat >> root/harness/cmd/capture <<- 'END'
		cmd_main()
		{
			local kind=none arg=$1 step

			if [ "$arg" = export ]; then
				. "$ACKPROOF_ROOT/harness/capture/export"
				shift
				verb_main "$@"
				return
			fi
			_parse "$@"
			step="capture $variant $seed"
			echo "$step" >> "$STEPS"
			[ ! -e "$HOOK" ] || . "$HOOK"
			kernel_build "$variant"
			[ "$variant" = series ] || kind=loss
			(cd "$(dirname "$folder")" && "$MKCAPTURE" made $kind)
			jq --arg hash "${kernel_dir##*/}" --argjson skipped "${SKIPPED:-null}" \
				'.kernel.hash = $hash | .counters.fsync.skipped = $skipped' \
				"$(dirname "$folder")/made/capture.json" > "$folder.json"
			mv "$folder.json" "$(dirname "$folder")/made/capture.json"
			mv -T "$(dirname "$folder")/made" "$folder"
		}
	END
	cat >> root/harness/cmd/replay <<- 'END'
		cmd_main()
		{
			local lost step

			_parse "$@"
			step="replay $(jq -r .kernel.hash "$capture/capture.json") $points"
			echo "$step" >> "$STEPS"
			[ ! -e "$HOOK" ] || . "$HOOK"
			lost=$("$ACKPROOF_BIN/lwaudit" --json "$capture") || :
			tr , '\n' <<< "$points" | jq -c --argjson audit "$lost" '. as $p |
				{capture: $audit.log_xxh128, point: $p, mount: "ok",
				 losses: [$audit.losses[] | select(.from_entry <= $p) |
					{kind, writer, file, block, op, got: -1}],
				 repair: null, ms: {}}' > "$output"
			echo '{"mismatch": null, "complaint": null}'
			! grep -q '"losses":\[{' "$output" || exit 1
		}
	END
}

campaign()
{
	root/harness/ackproof -q campaign "$@"
}

latest()
{
	echo "results/$(cat results/latest)"
}

# The results of a run, but for times and what is of the moment
without_times()
{
	jq -c 'map(del(.seconds))' "$1/summary.json"
	(cd "$1" && find . -mindepth 1 ! -name .error -printf '%P\n' | sort)
	cat "$1"/*/points.jsonl "$1"/*/losses.jsonl
	grep -hv '^seconds' "$1"/*/metrics
	cat "$1/result.ktap"
}

@test "as expected: the table, and the results in each form" {
	campaign ./file > table
	cat table
	[ "$(awk '$1 == "one" { print $2, $3, $6, $7, $8, $9, $11, $12 }' table)" = '2/2 20 0 6 0 0/0 clean yes' ]
	[ "$(awk '$1 == "two" { print $2, $3, $6, $9, $11, $12 }' table)" = '2/2 20 2 2/2 loss yes' ]
	cmp table "$(latest)/table"
	xmllint --noout "$(latest)/result.xml"
	[ "$(xmllint --xpath 'string(/testsuite/@tests)' "$(latest)/result.xml")" = 2 ]
	[ "$(xmllint --xpath 'string(/testsuite/@failures)' "$(latest)/result.xml")" = 0 ]
	[ "$(xmllint --xpath 'count(//failure|//error|//skipped)' "$(latest)/result.xml")" = 0 ]
	grep -qx $'fsyncs\t20' "$(latest)/one/metrics"
	grep -qx $'acks_lost\t2' "$(latest)/two/metrics"
	# a line for each point and for each loss
	[ "$(wc -l < "$(latest)/one/points.jsonl")" = 6 ]
	[ ! -s "$(latest)/one/losses.jsonl" ]
	jq -se 'map(select(.by == "audit")) | length == 2 and all(.kind == "stale") and
		(map(.nr) == [1, 2]) and all(.token | test("^[0-9a-f]{32}@[0-9]+:stale:w0"))' \
		"$(latest)/two/losses.jsonl"
	jq -se 'any(.by == "mount")' "$(latest)/two/losses.jsonl"
	[ "$(grep -c '^ok' "$(latest)/result.ktap")" = 2 ]
	[ "$(grep -c '^    ok' "$(latest)/result.ktap")" = 4 ]
	! grep -q 'not ok' "$(latest)/result.ktap" || false
	jq -e '.captures == 4 and .covered == 2 and .sections == 2' "$(latest)/run.json"
	# as expected: nothing is kept
	[ -z "$(find "$(latest)" -name log -o -name capture.tar)" ]
	[ -z "$(ls jobs)" ]
}

@test "not as expected: in each form, and a capture is kept" {
	run -1 campaign --set two.expect=clean --set one.expect=loss ./file
	echo "$output"
	[[ $output == *"one: not as expected: no acks lost and no replay with loss, expected some"* ]]
	[[ $output == *"two: not as expected: 2 acks lost, expected none; "* ]]
	[[ $output == *"  reproduce: ackproof reproduce "*"@"*":stale:w0:"*" $PWD/$(latest)/two/1/capture.tar" ]]
	xmllint --noout "$(latest)/result.xml"
	[ "$(xmllint --xpath 'string(/testsuite/@failures)' "$(latest)/result.xml")" = 2 ]
	[ "$(xmllint --xpath 'count(//failure)' "$(latest)/result.xml")" = 2 ]
	[ "$(grep -c '^not ok' "$(latest)/result.ktap")" = 2 ]
	[ "$(find "$(latest)" -name capture.tar | wc -l)" = 4 ]
	[ -z "$(find "$(latest)" -name log)" ]
	# and can be found again there, or by what it was reported as
	run ackproof reproduce "$(latest)"
	[[ $output == *"the capture's kernel is not here"* ]]
}

@test "fewer skipped flushes counted than the log shows: wrong, if it is not a bug that is expected" {
	SKIPPED=-1 run -1 campaign ./file
	[[ $output == *"one: not as expected: the counter says -2 skipped, the log at least "* ]]
	[[ $output != *"two: not as expected"* ]]
	SKIPPED=null campaign ./file
}

@test "what is kept takes no more bytes than it may; --keep keeps all" {
	local one

	campaign --keep ./file
	[ "$(find "$(latest)" -name capture.tar | wc -l)" = 4 ]
	one=$(find "$(latest)/two" -name capture.tar -printf '%s\n' | sort -n | tail -n 1)
	run -1 campaign --set expect=loss --set two.expect=clean --keep-bytes $((one * 2 + one / 2)) ./file
	[ "$(find "$(latest)" -name capture.tar | wc -l)" = 2 ]
	run -1 campaign --set two.expect=clean --keep-bytes 1 ./file
	[ -z "$(find "$(latest)" -name capture.tar)" ]
	[[ $output != *reproduce:* ]]
}

# Step $1 of variant $2 fails as its guest would, $3 times
fails_as()
{
	cat > hook <<- END
		if [[ \$step == "$1"* ]] && [ ! -e "$PWD/failed.$3" ]; then
			for ((n = 1; n <= $3; n++)); do
				[ -e "$PWD/failed.\$n" ] || break
			done
			: > "$PWD/failed.\$n"
			die $EXIT "$2; see $PWD/jobs/none"
		fi
	END
}

@test "a guest that hangs, dies or panics once is tried again, and told" {
	local end what

	EXIT=1
	for what in "capture series 2/the capture failed: hang: no end after 300 s" \
		"replay/a replay failed: died: the guest ended with status 1" \
		"capture early-snapshot 1/the capture failed: panic: Kernel panic - not syncing"; do
		rm -f failed.*
		fails_as "${what%%/*}" "${what#*/}" 1
		campaign ./file
		[ -e failed.1 ]
		[ "$(jq 'map(.retried) | add' "$(latest)/summary.json")" = 1 ]
		[ -n "$(find "$(latest)" -name unit.json -exec jq -r '.retried // empty' {} +)" ]
	done
	EXIT=125
	rm failed.*
	fails_as "capture series 1" "the kernel does not boot: hang: no end after 9 s" 1
	campaign ./file
	[ -e failed.1 ]
}

@test "twice, and it is reported as what it is: not clean, no loss" {
	EXIT=1
	fails_as "capture series 2" "the capture failed: hang: no end after 300 s" 2
	run -1 campaign ./file
	echo "$output"
	[[ $output == *"one: not as expected: 1 of 2 captures failed: hang: no end after 300 s (at first: hang: no end after 300 s)"* ]]
	jq -e '.[0] | .captures == 1 and .failed == 1 and .acks_lost == 0 and (.ok | not)' \
		"$(latest)/summary.json"
	[ "$(xmllint --xpath 'string(/testsuite/@errors)' "$(latest)/result.xml")" = 1 ]
	grep -q '^    not ok 2 capture 2 seed 2 # hang: ' "$(latest)/result.ktap"
	grep -qx 'not ok 1 one' "$(latest)/result.ktap"
	jq -e '.failed == "hang: no end after 300 s"' "$(latest)/one/2/failed.json"
	# a section that expects losses has not shown any by it
	rm failed.*
	fails_as "capture early-snapshot" "the capture failed: died: the guest ended with status 1" 9
	run -1 campaign --section two ./file
	[[ $output == *"two: not as expected: 2 of 2 captures failed: died: "* ]]
	jq -e '.[0].acks_lost == 0' "$(latest)/summary.json"
}

@test "a failure that is no guest's is not tried again" {
	EXIT=1
	fails_as "capture series 1" "the capture failed: logging stopped: the log device is full" 9
	run -1 campaign ./file
	[[ $output == *"one: not as expected: 1 of 2 captures failed: "*"the log device is full"* ]]
	[ "$(grep -c 'capture series 1' steps)" = 1 ]
}

@test "where the machine cannot go on, it stops, and the same command goes on" {
	campaign ./file
	without_times "$(latest)" > whole
	: > steps
	EXIT=77
	fails_as "capture early-snapshot 2" "no space: it has 0 MiB free" 1
	run -77 --separate-stderr campaign ./file
	[[ $stderr == "ackproof: stopped: no space: it has 0 MiB free; "*"the same command goes on from here" ]]
	# a log takes space until its capture is done with, and no longer
	[ -e jobs/campaign-file/run/units/1/unit.json ]
	[ ! -e jobs/campaign-file/run/units/1/capture/log ]
	campaign ./file
	without_times "$(latest)" | diff whole -
	# nothing that had ended was done again
	[ "$(grep -c 'capture series 1' steps)" = 1 ]
	[ "$(grep -c 'capture early-snapshot 2' steps)" = 2 ]
}

@test "killed at any step, the same command ends like a run that was not" {
	local n steps pid

	campaign -j 1 ./file
	without_times "$(latest)" > whole
	steps=$(wc -l < steps)
	unset ACKPROOF_SUPERVISED
	for ((n = 1; n <= steps; n += 2)); do
		: > steps
		echo "[ \$(wc -l < '$PWD/steps') -ne $n ] || [ -e '$PWD/killed.$n' ] || {
			: > '$PWD/killed.$n'; kill -KILL \$(cat '$PWD/pid'); sleep 60; }" > hook
		root/harness/ackproof -q campaign -j 1 ./file > /dev/null 2>&1 3>&- &
		pid=$!
		echo $pid > pid
		wait $pid || :
		[ -e killed.$n ]
		[ "$(cat results/latest)" != "$(cat jobs/campaign-file/run/name)" ]
		# what held its lock is gone in a moment
		flock -w 10 jobs/campaign-file/lock true
		campaign -j 1 ./file > /dev/null
		without_times "$(latest)" | diff whole -
	done
}

# A run that was stopped
cut_off()
{
	EXIT=77
	rm -f failed.*
	fails_as "capture early-snapshot 2" "no space" 1
	run -77 campaign "$@"
	find jobs -type f ! -name lock -exec sha256sum {} + | sort > before
}

refused_as()
{
	local what=$1

	shift
	run -2 --separate-stderr campaign "$@"
	echo "$stderr"
	[ "$stderr" = "ackproof: $PWD/jobs/campaign-file: holds an unfinished run of $what: give the same command again to end it, or --restart to start anew" ]
	find jobs -type f ! -name lock -exec sha256sum {} + | sort | diff before -
}

@test "a run of something else is not gone on with, and stays" {
	cut_off ./file
	refused_as "other options" --set seed=5 ./file
	refused_as "other options" --keep ./file
	refused_as "other options" --section one ./file
	cp file before.file
	echo '# changed' >> file
	refused_as "another campaign file" ./file
	cp before.file file
	echo '# changed' >> root/harness/lib/unit.sh
	refused_as "another version of ackproof" ./file
	campaign --restart ./file
	[ -z "$(ls jobs)" ]
}

@test "two at once in one folder" {
	mkdir -p jobs/campaign-file
	exec 9> jobs/campaign-file/lock
	flock 9
	run -77 --separate-stderr campaign ./file
	[ "$stderr" = "ackproof: $PWD/jobs/campaign-file is in use by another ackproof" ]
	run -77 --separate-stderr campaign --restart ./file
	exec 9>&-
	[ ! -s steps ]
}

@test "new seeds: drawn once, recorded, and the line that repeats them" {
	local seed again

	sed -i 's/^seed = 1/seed = new/' file
	campaign --section one ./file
	seed=$(jq '.[0].seed' "$(latest)/summary.json")
	[ "$(awk '{ print $3 }' steps | grep -v '[^0-9]' | sort -n | xargs)" = "$seed $((seed + 1))" ]
	again=$(jq -r .again "$(latest)/run.json")
	[ "$again" = "ackproof campaign --section one --set one.seed=$seed ./file" ]
	: > steps
	# shellcheck disable=SC2086 # a command line
	campaign ${again#ackproof campaign }
	grep -q "^capture series $((seed + 1))$" steps
	campaign --section one ./file
	[ "$(jq '.[0].seed' "$(latest)/summary.json")" != "$seed" ]
	# one that was cut off keeps its own
	sed -i '/variant = early/a captures = 3' file
	EXIT=77
	fails_as "capture early-snapshot" "no space" 1
	run -77 campaign ./file
	seed=$(awk '$1 == "two" { print $2 }' jobs/campaign-file/run/seeds)
	campaign ./file
	[ "$(jq '.[1].seed' "$(latest)/summary.json")" = "$seed" ]
}

@test "a budget: each section in turn, and what was not covered is not ok" {
	echo 'case $step in capture*) sleep 1.5 ;; esac' > hook
	run -1 campaign -j 1 --budget 2s ./file
	echo "$output"
	[ "$(sed -n 's/^capture //p' steps | head -n 1)" = "series 1" ]
	jq -e '.budget == 2 and .captures < .planned' "$(latest)/run.json"
	jq -e '.[1] | .captures == 0 and (.ok | not) and .why == ["not covered within the budget"]' \
		"$(latest)/summary.json"
	[ "$(xmllint --xpath 'string(/testsuite/@errors)' "$(latest)/result.xml")" = 1 ]
	# of one section
	campaign -j 1 --set captures=4 --set one.budget=1s ./file
	jq -e '.[0].captures == 1 and .[0].planned == 4 and .[1].captures == 4' "$(latest)/summary.json"
}

@test "it repeats with new seeds until the budget is used" {
	{ printf '%s\n' 'budget = 6s' 'repeat = yes'; cat file; } > often
	campaign ./often
	jq -e 'all(.captures >= 4 and .captures <= .planned)' "$(latest)/summary.json"
	jq -e '.seconds <= 12 and .covered == 2' "$(latest)/run.json"
	# no seed twice
	[ "$(grep -c '^capture series' steps)" = "$(grep '^capture series' steps | sort -u | wc -l)" ]
}

@test "a matrix: its results are in folders of its names" {
	campaign --section one --set matrix.delay='1,1 2,2' ./file
	[ -s "$(latest)/one/delay=1,1/1/unit.json" ]
	grep -qx $'captures\t2' "$(latest)/one/delay=2,2/metrics"
	grep -q 'name="one/delay=2,2"' "$(latest)/result.xml"
}

@test "one queue: no core waits for a section's end" {
	# the first section's last capture takes long, and the second's go by meanwhile
	echo '[[ $step != "capture series 1" ]] || sleep 3' > hook
	campaign -j 2 --set captures=1 ./file
	[ "$(head -n 2 steps | cut -d ' ' -f 2 | sort | xargs)" = "early-snapshot series" ]
	# and what it replays first is of the second section
	[ "$(grep -m 1 ^replay steps | cut -d ' ' -f 2)" = "$(printf early-snapshot | sha256sum | cut -c 1-16)" ]
}

@test "no memory, or no space, and nothing is begun" {
	run -77 --separate-stderr campaign --set writers=1000 --set fsyncs=9000000 ./file
	[[ $stderr == "ackproof: no space: $PWD/jobs/campaign-file has "*" MiB free, "* ]]
	[ ! -s steps ]
}
