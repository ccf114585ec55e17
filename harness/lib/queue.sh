# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The one queue of a campaign's run, from which workers, one a core, take steps of
# units across all sections. All that it knows is in files below $run, so that a
# run that was killed goes on from there:
#
#	plan		a line for each unit: number, section, its capture's
#			number, seed
#	costs		a line for each step that has ended: unit, section, seconds
#	elapsed		seconds that the runs so far have taken
#	claims/		a file for each step that a worker has taken; they go with
#			the workers
#	stopped		why no step is taken any more
#
# See unit.sh for what a unit has.

# queue_plan SECTION...: print a line of the plan for each capture of these, once
# more than there are. What has a budget may not get to its end, so it takes one of
# each section in turn.
queue_plan()
{
	local section i most=0 count
	local -A have=()

	count=$(wc -l < "$run/plan")
	for section; do
		have[$section]=$(awk -F '\t' -v s="$section" '$2 == s' "$run/plan" | wc -l)
		[ "${value[$section.captures]}" -le $most ] || most=${value[$section.captures]}
	done
	if [ -n "$campaign_budget" ]; then
		for ((i = 1; i <= most; i++)); do
			for section; do
				[ $i -gt "${value[$section.captures]}" ] || _plan_one
			done
		done
	else
		for section; do
			for ((i = 1; i <= value[$section.captures]; i++)); do
				_plan_one
			done
		done
	fi
}

# Another round of the sections that may begin one; fails if none may
_plan_more()
{
	local section open=()

	for section in "${sections[@]}"; do
		! _may_begin "$section" || open+=("$section")
	done
	[ ${#open[@]} -gt 0 ] || return 1
	queue_plan "${open[@]}" > "$run/plan.more" &&
		cat "$run/plan" "$run/plan.more" > "$run/plan.new" &&
		mv "$run/plan.new" "$run/plan"
}

_plan_one()
{
	local n=$((have[$section] + i))

	count=$((count + 1))
	printf '%d\t%s\t%d\t%d\n' $count "$section" $n $((seed_of[$section] + n - 1))
}

# Seconds since the first run began
queue_elapsed()
{
	echo $(($(cat "$run/elapsed" 2> /dev/null || echo 0) + SECONDS - started))
}

# Whether another capture of section $1 may begin: it must end within both budgets,
# if its like have told how long that takes
_may_begin()
{
	local budget=${value[$1.budget]-}

	[ -n "$budget$campaign_budget" ] || return 0
	[ -z "$budget" ] || budget=$(seconds budget "$budget")
	awk -F '\t' -v section="$1" -v budget="${budget:-0}" -v all="${campaign_budget:-0}" \
		-v elapsed="$(queue_elapsed)" '
		{
			sum += $3
			units += !($1 in seen)
			seen[$1]
		}
		$2 == section {
			own += $3
			mine += !($1 in of_section)
			of_section[$1]
		}
		END {
			mean = units ? sum / units : 0
			if (mine)
				mean = own / mine
			if (budget && mine && own + mean > budget)
				exit 1
			exit all && elapsed + mean > all
		}' "$run/costs"
}

_is_free()
{
	[ ! -e "$run/claims/$1" ]
}

# Whether shard files of unit $1 are all replayed: sets step to what is next of it,
# or to nothing if others have taken all that there is
_next_of_unit()
{
	local dir=$run/units/$1 shard all=1

	step=''
	for shard in "$dir"/shard.????; do
		[ ! -e "$shard.json" ] || continue
		all=''
		if _is_free "$1.${shard##*.}"; then
			step="replay ${shard##*.}"
			return
		fi
	done
	[ -z "$all" ] || ! _is_free "$1.finish" || step=finish
}

# Take the next step: sets id and step, both empty if there is none now. Returns 1 if
# there will be none any more. To end what was begun comes first: its log is large.
_take()
{
	local waiting='' dir closed='' section

	step='' id=''
	[ ! -e "$run/stopped" ] || return 1
	while IFS=$'\t' read -r id section _; do
		dir=$run/units/$id
		[ ! -e "$dir/unit.json" ] && [ ! -e "$dir/failed.json" ] &&
			[ -e "$dir/recorded" ] || continue
		_next_of_unit "$id"
		[ -z "$step" ] || return 0
		waiting=1
	done < "$run/plan"
	while IFS=$'\t' read -r id section _; do
		dir=$run/units/$id
		[ ! -e "$dir/recorded" ] && [ ! -e "$dir/failed.json" ] || continue
		if ! _is_free "$id.record"; then
			waiting=1
			continue
		fi
		[[ $closed != *"<$section>"* ]] || continue
		if _may_begin "$section"; then
			step=record
			return 0
		fi
		closed+="<$section>"
	done < "$run/plan"
	id=''
	if [ -n "$campaign_repeat" ] && _plan_more; then
		_take
		return
	fi
	[ -n "$waiting" ]
}

_do_step()
{
	case $1 in
	record)
		unit_record && : > "$unit/recorded"
		;;
	replay) unit_replay "$2" ;;
	finish) unit_finish ;;
	esac
}

# Steps one after the other, until there are none. Each is a process of its own,
# where what fails ends it.
worker()
{
	local cpu=$1 id step status began why lock
	local unit section nr seed

	exec {lock}> "$run/queue.lock"
	while :; do
		flock "$lock"
		_take || break
		[ -z "$id" ] || : > "$run/claims/$id.${step#replay }"
		flock -u "$lock"
		if [ -z "$id" ]; then
			sleep 0.2
			continue
		fi
		unit_of_plan "$id"
		began=${EPOCHREALTIME/./} status=0
		# shellcheck disable=SC2086 # step is words
		_do_step $step 2> "$run/claims/$id.${step#replay }" {lock}>&- &
		wait $! || status=$?
		why=''
		if [ $status -ne 0 ]; then
			why=$(unit_failed $status "$run/claims/$id.${step#replay }" 2>&1) ||
				replace_file "$run/stopped" echo "${why:-no step can be taken}" || exit
		fi
		flock "$lock"
		printf '%s\t%s\t%s\n' "$id" "$section" \
			"$(((${EPOCHREALTIME/./} - began) / 1000))e-3" >> "$run/costs"
		rm -f "$run/claims/$id.${step#replay }"
		flock -u "$lock"
	done
}

# All that can be done of the plan. Sets queue_stopped to why that was not all. Not to
# be called in a condition, where errors would not end what they happen in.
queue_run()
{
	local pids=() pid i watch

	queue_stopped=''
	rm -rf "$run/claims" "$run/stopped"
	mkdir "$run/claims"
	for ((i = 0; i < jobs; i++)); do
		worker $i &
		pids+=($!)
	done
	_watch_queue &
	watch=$!
	for pid in "${pids[@]}"; do
		wait "$pid" || queue_stopped="a worker ended: is the disk full?"
	done
	kill $watch 2> /dev/null || :
	wait $watch 2> /dev/null || :
	_end_progress
	[ ! -s "$run/stopped" ] || queue_stopped=$(cat "$run/stopped")
}

# Note the time every second, for a run that is killed; and tell how far it is
_watch_queue()
{
	local base done_units planned

	base=$(cat "$run/elapsed" 2> /dev/null || echo 0)
	while :; do
		sleep 1
		# of this run alone: another process has begun it at the same time
		replace_file "$run/elapsed.now" echo $((base + SECONDS - started)) || :
		[ -t 2 ] && [ -z "${quiet-}" ] || continue
		done_units=$(find "$run/units" -maxdepth 2 \( -name unit.json -o -name failed.json \) | wc -l)
		planned=$(wc -l < "$run/plan")
		progress "$done_units of $planned captures recorded, audited and replayed, $((base + SECONDS - started)) s"
	done
}
