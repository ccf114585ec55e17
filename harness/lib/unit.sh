# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# A unit of a campaign: one capture, from the recording to its result, in steps
# that can each be done again. Its folder, units/N below $run, gets
#
#	capture/	what was recorded, with audit.json, points and suspects
#	shard.K		the points of its Kth replay, and K.jsonl and K.json: what
#			that has found
#	unit.json	the result: the unit is done
#	failed.json	or why there is none
#	retried		why a step was done again, if one was
#
# The functions expect unit, section, nr and seed of it, and cpu, the core to run
# on. Those of steps return non-zero with a message in error.

SHARD_POINTS=40

# A field of unit $1 of the plan
unit_of_plan()
{
	IFS=$'\t' read -r _ section nr seed < <(grep -m 1 "^$1"$'\t' "$run/plan")
	unit=$run/units/$1
}

# The options of replay that section's keys are: sets options
unit_replay_options()
{
	local key

	options=(--timeout $((value[$section.timeout] * 2)))
	for key in $GUEST_KEYS; do
		[ -z "${value[$section.$key]-}" ] ||
			options+=("--$key" "${value[$section.$key]}")
	done
}

# Record, audit, and choose the points
unit_record()
{
	local options points status=0 dir=$unit/capture
	local -a words

	rm -rf "$dir" "$unit"/shard.*
	mkdir -p "$unit"
	campaign_capture_options "$section"
	"$ACKPROOF_ROOT/harness/ackproof" -q capture --cpu "$cpu" --seed "$seed" \
		"${kernel_args[@]}" "${options[@]}" "$dir" || return
	[ "$(jq -r .kernel.hash "$dir/capture.json")" = "${kernel_of[$section]}" ] || {
		echo "recorded on kernel $(jq -r .kernel.hash "$dir/capture.json"), expected ${kernel_of[$section]}: its source has changed" >&2
		return 1
	}
	"$ACKPROOF_BIN/lwaudit" --json "$dir" > "$dir/audit.json" ||
		[ -s "$dir/audit.json" ] || return
	points=${value[$section.points]}
	"$ACKPROOF_BIN/lwpoints" "$dir" "$points" > "$dir/points" || return
	: > "$dir/suspects"
	if [ "${value[$section.suspects]}" -gt 0 ]; then
		"$ACKPROOF_BIN/lwpoints" "$dir" "${value[$section.suspects]}@suspects" \
			> "$dir/suspects" || return
	fi
	sort -nu "$dir/points" "$dir/suspects" > "$unit/all" || return
	mapfile -t words < "$unit/all"
	[ ${#words[@]} -gt 0 ] || {
		echo "no point of this capture is '$points'" >&2
		return 1
	}
	# of one size, so that none ends long before the others
	split -n "l/$(((${#words[@]} + SHARD_POINTS - 1) / SHARD_POINTS))" -d -a 4 \
		"$unit/all" "$unit/shard." || return
	rm "$unit/all"
}

# Replay shard $1. Losses are no failure.
unit_replay()
{
	local shard=$unit/shard.$1 status=0 options

	unit_replay_options
	"$ACKPROOF_ROOT/harness/ackproof" -q replay --jobs 1 --cpu "$cpu" \
		"${options[@]}" --points "$(paste -sd, "$shard")" \
		--output "$shard.jsonl" --json "$unit/capture" > "$shard.out" || status=$?
	[ $status -eq 0 ] || [ -s "$shard.out" ] || return $status
	mv "$shard.out" "$shard.json"
}

# Sum up. A suspect is confirmed if the mount lost the very block that the audit
# did.
_unit_result()
{
	local dir=$unit/capture

	jq -n --slurpfile capture "$dir/capture.json" \
		--slurpfile audit "$dir/audit.json" \
		--slurpfile replayed "$dir/points.jsonl" \
		--slurpfile points "$dir/points" \
		--slurpfile shards <(cat "$unit"/shard.*.json) \
		--slurpfile suspects "$dir/suspects" \
		--argjson nr "$nr" --argjson seed "$seed" \
		--arg retried "$(cat "$unit/retried" 2> /dev/null)" \
		--arg expect "${value[$section.expect]}" \
		--argjson expect_skipped "${value[$section.expect_skipped]}" '
		($replayed | map({key: "\(.point)", value: .}) | from_entries) as $at |
		($audit[0].losses | group_by(.from_entry) |
			map({key: "\(.[0].from_entry)", value: .}) |
			from_entries) as $lost |
		def id: "\(.writer)/\(.file)/\(.block)";
		def bad: .mount != "ok" or .losses != [];
		($suspects | map(. as $p | $at["\($p)"] as $r | select(
			($lost["\($p)"] | map(id)) - ($r.losses | map(id)) == []))
		) as $confirmed |
		{nr: $nr, seed: $seed, capture: $audit[0].log_xxh128,
		 kernel: $capture[0].kernel.hash,
		 fsyncs: $audit[0].acks,
		 skipped_min: $audit[0].skipped_min,
		 # with noise, the counter has its fsyncs, too
		 skipped_exact: (if $capture[0].noise then null
			else $capture[0].counters.fsync.skipped // null end),
		 acks_lost: $audit[0].acks_lost,
		 replays: ($points | length),
		 replays_lost: ($points | map(select($at["\(.)"] | bad)) | length),
		 suspects: ($suspects | length),
		 suspects_confirmed: ($confirmed | length),
		 unconfirmed: ($suspects - $confirmed),
		 complaint: ($shards | map(.mismatch // .complaint // empty) | .[0]),
		 retried: (if $retried == "" then null else $retried end)} |
		. + {as_expected: (.unconfirmed == [] and .complaint == null and
			.skipped_min * 100 >= .fsyncs * $expect_skipped and
			(if $expect == "clean" then .acks_lost + .replays_lost == 0
			 elif $expect == "loss" then .acks_lost + .replays_lost > 0
			 else true end))}'
}

# What all archives of this run take, in bytes
_kept_bytes()
{
	find "$run/units" -name capture.tar -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
}

# Keep the capture as an archive if somebody may want to look at it, and no log
# in any case: a night's would fill the disk.
_unit_keep()
{
	local dir=$unit/capture lock

	if [ -n "$keep" ] || jq -e '.as_expected | not' "$unit/result" > /dev/null; then
		"$ACKPROOF_ROOT/harness/ackproof" -q capture export --force \
			"$dir" "$unit/capture.tar.new" || return
		exec {lock}> "$run/keep.lock"
		flock "$lock"
		if [ $(($(_kept_bytes) + $(stat -c %s "$unit/capture.tar.new"))) -le "$keep_bytes" ]; then
			mv "$unit/capture.tar.new" "$dir/capture.tar"
		else
			rm "$unit/capture.tar.new"
		fi
		exec {lock}>&-
	fi
	rm -f "$dir/log" "$dir/trace"
}

# After the last replay. The result comes last: what is done before can be done
# again as long as there is none, but for the log, so that goes after it.
unit_finish()
{
	local dir=$unit/capture

	if [ ! -e "$unit/result" ]; then
		cat "$unit"/shard.*.jsonl > "$dir/points.jsonl" || return
		replace_file "$unit/result" _unit_result || return
	fi
	if [ -e "$dir/log" ]; then
		_unit_keep || return
	fi
	mv "$unit/result" "$dir/unit.json" && ln -f "$dir/unit.json" "$unit/unit.json"
}

# Why a step that printed $1 has failed: what a guest has ended with, if it is that
_guest_end()
{
	case $1 in
	*"the guest was killed"*) echo "died: the guest was killed, or could not be started" ;;
	*) sed -nE 's/^ackproof: (the capture failed|a replay failed|the kernel does not boot): ((hang|died|panic|oops|corruption): .*); see [^;]*$/\2/p' <<< "$1" ;;
	esac
}

# Leave why this unit has no result, and what the guest said of it. The job's folder
# that the message names is removed: its log may be large.
_unit_give_up()
{
	local why=$1 job=$2 file

	if [ -n "$job" ] && [ -d "$job" ]; then
		mkdir -p "$unit/capture"
		for file in console dmesg stderr mkfs.out noise.json; do
			[ ! -s "$job/$file" ] || cp "$job/$file" "$unit/capture/$file" || return
		done
		job_drop "$job"
	fi
	rm -f "$unit/capture/log" "$unit/capture/trace"
	mkdir -p "$unit"
	replace_file "$unit/failed.json" jq -n --argjson nr "$nr" --argjson seed "$seed" \
		--arg failed "$why" --arg retried "$(cat "$unit/retried" 2> /dev/null)" \
		'{nr: $nr, seed: $seed, failed: $failed,
		  retried: (if $retried == "" then null else $retried end)}'
}

# A step has failed with status $1 and file $2 has what it said. Returns 0 if the
# step is to be done again or the unit is given up, and EXIT_CANNOT, with a message
# on stdout, where it is the machine that cannot go on.
unit_failed()
{
	local status=$1 said why job guest free_kib

	said=$(grep -am 1 . "$2") || said="it ended with status $status"
	guest=$(_guest_end "$said")
	free_kib=$(df --output=avail -k "$run" | tail -n 1)
	if [ "$free_kib" -lt $((64 << 10)) ]; then
		echo "no space: $run has $((free_kib >> 10)) MiB free: ${said#ackproof: }"
		return $EXIT_CANNOT
	fi
	if [ "$status" -eq $EXIT_CANNOT ] && [ -z "$guest" ]; then
		echo "${said#ackproof: }"
		return $EXIT_CANNOT
	fi
	job=$(sed -nE 's/.*; see (.*)$/\1/p' <<< "$said")
	why=${guest:-${said#ackproof: }}
	case $why in hang:*|died:*|panic:*)
		if [ ! -e "$unit/retried" ]; then
			mkdir -p "$unit"
			replace_file "$unit/retried" echo "$why"
			return
		fi
		;;
	esac
	_unit_give_up "${why%; see *}" "$job"
}
