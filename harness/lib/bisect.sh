# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What the bisections of kernels share: the verdict on one of them, how many
# captures that takes, and the folder that all is kept in. A verdict that is
# there is not found again, so a run that was killed goes on where it was.
#
#	STATE/parameters	what a run must have in common with this one
#	STATE/verdicts.jsonl	a line for each verdict; of an id, the last counts
#	STATE/lost/ID		a capture of it that lost acks
#	STATE/failed/ID		what is left of a build or a capture that failed
#	STATE/control		a kernel that has run here
#	STATE/run, STATE/jobs	captures on their way

. "$ACKPROOF_ROOT/harness/lib/kernel.sh"
. "$ACKPROOF_ROOT/harness/lib/job.sh"
. "$ACKPROOF_ROOT/harness/lib/fio.sh"
. "$ACKPROOF_ROOT/harness/lib/campaign.sh"
. "$ACKPROOF_ROOT/harness/lib/campaign-check.sh"

# How many captures with a loss make a loss rate, and how many to try for that
LOSSES_WANTED=6
CAPTURES_TRIED=48
# More for a good answer is not worth anybody's while
CAPTURES_MOST=100

BISECT_OPTIONS_HELP='      --set KEY=VALUE  override a key of the section
      --captures N     of each that is good, instead of what the loss rate asks for
  -o, --output FOLDER  where all is kept (default: below results/bisect)
  -j, --jobs N         guests at a time, one a core (default: one a core)
      --json           print the report as JSON'

bisect_jobs=$(nproc) bisect_captures='' bisect_json='' state='' section=528/series
bisect_sets=()

# Take one of these options. Returns how many words it was, 0 for none.
bisect_option()
{
	case $1 in
	--json) bisect_json=1; return 1 ;;
	--set|--captures|-o|--output|-j|--jobs)
		[ $# -ge 2 ] || usage_error "$1 needs an argument"
		;;
	esac
	case $1 in
	--set)
		[[ $2 == *=* ]] || usage_error "--set: '$2', expected KEY=VALUE"
		bisect_sets+=("$2")
		;;
	--captures) number --captures "$2" 1 10000; bisect_captures=$2 ;;
	-o|--output) state=$2 ;;
	-j|--jobs) number --jobs "$2" 1 1024; bisect_jobs=$2 ;;
	*) return 0 ;;
	esac
	return 2
}

# bisect_setup VARIANT PARAMETER...: read the section, whose kernel is VARIANT
# unless --set says otherwise, and make or find the state.
bisect_setup()
{
	local campaign=528 file set arch about config patches

	need jq jq
	if [[ $section == */* ]]; then
		campaign=${section%/*}
		section=${section##*/}
	fi
	campaign_find "$campaign"
	campaign_load
	is_one_of "$section" "${sections[@]}" ||
		die $EXIT_USAGE "no section '$section' in campaign $campaign; there are: ${sections[*]}"
	value[$section.variant]=$1
	shift
	for set in "${bisect_sets[@]}"; do
		campaign_check_key --set "${set%%=*}"
		value[$section.${set%%=*}]=${set#*=}
	done
	[ "${value[$section.seed]-}" != new ] ||
		die $EXIT_USAGE "section $section has a new seed each time: name one with --set seed=N"
	campaign_check "$section"
	campaign_capture_options "$section"
	kernel_read_variant "${value[$section.variant]}"
	_open_state "$@" "captures ${bisect_captures:-by the loss rate}" \
		"seed ${value[$section.seed]}" "capture ${options[*]}" \
		"version $ACKPROOF_VERSION" "patches and config:" \
		"$(_sum_files "${patches[@]}" -- "${config[@]}" "$PATCHES/config/$arch.Kconfig")"
}

# The state of a run with these parameters, empty or left by an earlier one
_open_state()
{
	local parameters

	parameters=$(printf '%s\n' "$@")
	[ -n "$state" ] ||
		state=$ACKPROOF_RESULTS/bisect/${1// /-}-$(sha256sum <<< "$parameters" | cut -c 1-12)
	state=$(realpath -m "$state")
	plain_path "$state"
	export ACKPROOF_JOBS=$state/jobs
	[ -z "${ACKPROOF_BISECT-}" ] || return 0
	if [ -e "$state" ] && [ ! -f "$state/parameters" ] &&
	   [ -n "$(find "$state" -mindepth 1 ! -name lock -print -quit)" ]; then
		die $EXIT_USAGE "--output: $state is there, and holds no bisection"
	fi
	mkdir -p "$state"
	lock "$state/lock" "$state"
	if [ -f "$state/parameters" ]; then
		cmp -s "$state/parameters" - <<< "$parameters" ||
			die $EXIT_USAGE "$state holds another bisection: see its file parameters"
		note "going on with $state"
	else
		replace_file "$state/parameters" echo "$parameters"
	fi
	rm -rf "$state"/{run,jobs}
	mkdir -p "$state"/{lost,failed}
	touch "$state/verdicts.jsonl"
}

# clean_captures CAPTURES LOSSES [N]: "N P", where P is the probability that N
# captures of a kernel are all clean, if all that is known of its loss rate is
# that LOSSES of CAPTURES lost; without N, the least that makes P less than
# 0.001. The rate is taken as evenly distributed before that, so that P is
# B(l+1, c-l+1+N) / B(l+1, c-l+1), and no certainty comes from few captures.
clean_captures()
{
	awk -v c="$1" -v l="$2" -v n="${3:-0}" 'BEGIN {
		for (p = 1; n ? i < n : p >= 0.001; i++)
			p *= (c - l + 1 + i) / (c + 2 + i)
		print i, p
	}'
}

# What is known of ID: sets verdict, empty if nothing is, captures, losses, acks,
# acks_lost, seconds, and seeds, how many are used up
bisect_known()
{
	local known

	verdict='' captures=0 losses=0 acks=0 acks_lost=0 seconds=0 seeds=0
	known=$(jq -rR --arg id "$1" 'fromjson? | select(.id == $id) |
		"\(.verdict) \(.captures) \(.losses) \(.acks) \(.acks_lost) \(.seconds) \(.seeds)"' \
		"$state/verdicts.jsonl" | tail -n 1)
	[ -z "$known" ] ||
		read -r verdict captures losses acks acks_lost seconds seeds <<< "$known"
}

# bisect_judge ID NAME WANT MAX OPTION...: capture on the kernel with these
# options until WANT captures have lost acks, or MAX are done; on from what is
# known. Sets the same as bisect_known, where the verdict is good, bad or skip.
# Ends this process if the machine is to blame.
bisect_judge()
{
	local id=$1 name=$2 want=$3 max=$4 why='' started=$SECONDS kernel_dir
	local kernel run=$state/run

	bisect_known "$id"
	[ "$verdict" != skip ] && [ "$losses" -lt "$want" ] &&
		[ "$captures" -lt "$max" ] || return 0
	kernel=("${@:5}")
	rm -rf "$run" "$ACKPROOF_JOBS"
	mkdir -p "$run"
	_build
	[ -n "$why" ] || _capture "$want" "$max"
	seconds=$((seconds + SECONDS - started))
	verdict=good
	[ -z "$why" ] || verdict=skip
	[ "$losses" -eq 0 ] || verdict=bad	# a loss is one, whatever came after it
	jq -nc --arg id "$id" --arg name "$name" --arg verdict "$verdict" \
		--arg why "$why" --argjson captures "$captures" \
		--argjson losses "$losses" --argjson acks "$acks" \
		--argjson acks_lost "$acks_lost" --argjson seconds "$seconds" \
		--argjson seeds "$seeds" \
		'{id: $id, name: $name, verdict: $verdict,
		  captures: $captures, losses: $losses, acks: $acks,
		  acks_lost: $acks_lost, seconds: $seconds, seeds: $seeds,
		  why: (if $why == "" then null else $why end)}' \
		>> "$state/verdicts.jsonl"
	rm -rf "$run"
	note "$name: $verdict, ${why:-$losses of $captures captures lost acks}, $((SECONDS - started)) s"
}

_build()
{
	local status=0

	progress "$name: building"
	kernel_dir=$("$ACKPROOF_ROOT/harness/ackproof" -q kernel path \
		"${kernel[@]}" "${value[$section.variant]}" 2> "$run/error") ||
		status=$?
	_blame "$status" "$run/error"
}

# Whose fault it is that a command ended with status $1 and the errors in file
# $2: sets why if the kernel's, and ends this process if the machine's.
_blame()
{
	local message left

	[ "$1" -ne 0 ] || return 0
	message=$(sed 's/^ackproof: //; s/^  //' "$2" | paste -sd ' ')
	case $1 in
	"$EXIT_UNTESTABLE"|"$EXIT_LOSS") ;;
	*) die $EXIT_CANNOT "$name: ${message:-ended with status $1}" ;;
	esac
	# what else would not run now?
	_control || die $EXIT_CANNOT "$name: $message; but a kernel that has run here does not boot any more, either"
	why=${message%; see *}
	left=${message##*; see }
	rm -rf "$state/failed/$id"
	[ ! -e "$left" ] || mv "$left" "$state/failed/$id"
}

# Whether a kernel that has run still boots
_control()
{
	local job

	[ -x "$state/control/linux" ] || return 0
	job_new control
	job_command "$job" true
	job_run "$(realpath "$state/control")" "$job" 60 0 disk=ram:64
}

# One guest a core. What is still running when the answer is clear is killed.
_capture()
{
	local want=$1 max=$2 pid status idle
	local -A cpu_of=() nr_of=()

	mapfile -t idle < <(seq 0 $((bisect_jobs - 1)))
	while [ "$losses" -lt "$want" ] && [ -z "$why" ]; do
		while [ ${#idle[@]} -gt 0 ] &&
		      [ $((captures + ${#cpu_of[@]})) -lt "$max" ]; do
			"$ACKPROOF_BIN/supervise" "$ACKPROOF_ROOT/harness/ackproof" \
				-q capture --cpu "${idle[0]}" \
				--seed $((${value[$section.seed]} + seeds)) \
				"${kernel[@]}" "${options[@]}" "$run/$seeds" \
				2> "$run/$seeds.error" &
			cpu_of[$!]=${idle[0]} nr_of[$!]=$seeds
			idle=("${idle[@]:1}") seeds=$((seeds + 1))
		done
		[ ${#cpu_of[@]} -gt 0 ] || break
		progress "$name: capture $((captures + 1)) of $max, $losses lost acks"
		status=0
		wait -n -p pid "${!cpu_of[@]}" || status=$?
		_take "$run/${nr_of[$pid]}" "$status"
		idle+=("${cpu_of[$pid]}")
		unset "cpu_of[$pid]"
	done
	[ ${#cpu_of[@]} -eq 0 ] || kill "${!cpu_of[@]}" 2> /dev/null || :
	wait
}

# Count capture $1, which ended with status $2
_take()
{
	local dir=$1 numbers

	_blame "$2" "$dir.error"
	[ -z "$why" ] || return 0
	"$ACKPROOF_BIN/lwaudit" --json "$dir" > "$dir/audit.json" \
		2> "$dir.error" || [ -s "$dir/audit.json" ] ||
		die $EXIT_CANNOT "$name: cannot audit a capture: $(tail -n 1 "$dir.error")"
	numbers=$(jq -r '"\(.acks) \(.acks_lost)"' "$dir/audit.json")
	captures=$((captures + 1))
	acks=$((acks + ${numbers% *})) acks_lost=$((acks_lost + ${numbers#* }))
	[ -e "$state/control" ] || ln -s "$kernel_dir" "$state/control"
	if [ "${numbers#* }" -gt 0 ]; then
		losses=$((losses + 1))
		[ -e "$state/lost/$id" ] || mv "$dir" "$state/lost/$id"
	fi
	rm -rf "$dir"
}

# How many captures a good answer takes, when the bad one is known: sets needed,
# and chance, the probability that one that is as bad passes for good
bisect_needed()
{
	local result

	result=$(clean_captures "$captures" "$losses" "$bisect_captures")
	needed=${result% *} chance=${result#* }
	[ -n "$bisect_captures" ] || [ "$needed" -le $CAPTURES_MOST ] ||
		die $EXIT_LOSS "$losses of $captures captures lost acks: to call a kernel good takes $needed captures; find a section that loses more often, or say --captures"
}

# Mount suspects of ID's capture: what the audit found must be so. Leaves
# STATE/replay.json.
bisect_confirm()
{
	local status=0

	[ ! -s "$state/replay.json" ] || return 0
	progress "mounting suspects of $1"
	"$ACKPROOF_ROOT/harness/ackproof" -q replay --json --jobs "$bisect_jobs" \
		--points 16@suspects "$state/lost/$1" > "$state/replay.json.new" ||
		status=$?
	[ $status -le $EXIT_LOSS ] && [ -s "$state/replay.json.new" ] ||
		die $EXIT_CANNOT "cannot replay $state/lost/$1"
	mv "$state/replay.json.new" "$state/replay.json"
}

# The last verdict of each id, as a list in the order of the first
bisect_verdicts()
{
	jq -nR '[inputs | fromjson?] | reduce .[] as $v ({}; .[$v.id] = $v) |
		[.[]]' "$state/verdicts.jsonl"
}

# jq's functions for what reports say of a verdict and of a chance
# shellcheck disable=SC2016,SC2034 # they are jq's; used by the verbs
BISECT_JQ='def captured: if .why then .why
		else "\(.losses) of \(.captures) captures lost acks, \(.acks_lost) of \(.acks)" end;
	def odds: "1 in \(1 / . | round)";'
