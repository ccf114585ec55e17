# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Reading campaign files: what each section says, from whichever line, and the
# sections that a matrix makes of one. Needs kernel.sh.

# Keys of a section: those that become an option each of capture; those that are
# put together to its --mkfs and --mount; and the rest. Those of guests are options
# of replay, too.
GUEST_KEYS='engine append memory cpus'
CAPTURE_KEYS='writers fsyncs mode sync files blocks delay data_size log_disk log_size timeout'" $GUEST_KEYS"
GEOMETRY_KEYS='block_size sector_size finobt reflink rmapbt mkfs logbsize mount'
OTHER_KEYS='variant captures seed points suspects noise budget expect expect_skipped expect_replays_lost'

declare -gA value		# SECTION.KEY, or SECTION.matrix.KEY
declare -gA origin		# the same: "line N" or "--set"
declare -gA axes		# SECTION: the keys that it has a matrix of
declare -gA parent		# section as it is run: the one of the file
sections=()
campaign_budget='' campaign_repeat=''

# is_one_of WORD WORD...: whether the first one is among the rest
is_one_of()
{
	local word=$1 other

	shift
	for other; do
		[ "$word" != "$other" ] || return 0
	done
	return 1
}

# The word of stdin that takes the fewest edits to become $1, if it takes few
_nearest()
{
	awk -v word="$1" '
	function least(a, b, c) {
		a = a < b ? a : b
		return a < c ? a : c
	}
	{
		n = length(word); m = length($0)
		for (j = 0; j <= m; j++)
			d[0, j] = j
		for (i = 1; i <= n; i++) {
			d[i, 0] = i
			for (j = 1; j <= m; j++)
				d[i, j] = least(d[i - 1, j] + 1, d[i, j - 1] + 1,
					d[i - 1, j - 1] + (substr(word, i, 1) != substr($0, j, 1)))
		}
		if (NR == 1 || d[n, m] < best) {
			best = d[n, m]
			nearest = $0
		}
	}
	END { if (best <= 1 + length(word) / 3) print nearest }'
}

campaign_check_key()
{
	local keys="$OTHER_KEYS $CAPTURE_KEYS $GEOMETRY_KEYS" nearest

	# shellcheck disable=SC2086 # the keys are words
	! is_one_of "${2#matrix.}" $keys || return 0
	nearest=$(tr ' ' '\n' <<< "$keys" | _nearest "${2#matrix.}")
	die $EXIT_USAGE "$1: unknown key '$2'${nearest:+, did you mean $nearest?}; known are: $keys"
}

campaign_names()
{
	basename -a "$ACKPROOF_ROOT"/harness/campaigns/*
}

# The file of campaign $1, one of ours or a path with a slash: sets file
campaign_find()
{
	case $1 in
	*/*)
		file=$1
		[ -f "$file" ] && [ -r "$file" ] ||
			die $EXIT_USAGE "'$file' is not a campaign file that can be read"
		return
		;;
	esac
	file=$ACKPROOF_ROOT/harness/campaigns/$1
	[[ $1 =~ ^[A-Za-z0-9_-]+$ ]] && [ -f "$file" ] ||
		die $EXIT_USAGE "no campaign '$1'; there are: $(campaign_names | xargs)"
}

# seconds WHAT TIME: a time like 90s, 20m or 8h in seconds. In $(...), end with
# "|| exit".
seconds()
{
	local unit=1

	[[ $2 =~ ^([1-9][0-9]{0,6})([smh]?)$ ]] ||
		die $EXIT_USAGE "$1: '$2' is not a time like 90s, 20m or 8h"
	case ${BASH_REMATCH[2]} in
	m) unit=60 ;;
	h) unit=3600 ;;
	esac
	echo $((BASH_REMATCH[1] * unit))
}

# Put a key into a section: $4 is where it is from. The last word counts, whether
# it is a value or a matrix of them.
_put_key()
{
	local section=$1 key=$2 new=$3 axis=${2#matrix.} other left=''

	for other in ${axes[$section]-}; do
		[ "$other" = "$axis" ] || left+=" $other"
	done
	if [ "$key" = "$axis" ]; then
		unset "value[$section.matrix.$axis]"
		axes[$section]=$left
	else
		[[ $new == *[![:space:]\|]* ]] ||
			die $EXIT_USAGE "$file: $4: $key: no values"
		unset "value[$section.$axis]"
		is_one_of "$axis" ${axes[$section]-} ||	# it stays in its place
			axes[$section]="${axes[$section]-} $axis"
	fi
	value[$section.$key]=$new
	origin[$section.$key]=$4
}

# Give section $2 all that section $1 has
_inherit()
{
	local key

	for key in "${!value[@]}"; do
		[[ $key == "$1".* ]] || continue
		value[$2.${key#"$1".}]=${value[$key]}
		origin[$2.${key#"$1".}]=${origin[$key]}
	done
	axes[$2]=${axes[$1]-}
}

# What goes for all of the campaign stands before its sections
_read_head()
{
	case $1 in
	budget) campaign_budget=$(seconds "$file: line $3: budget" "$2") || exit ;;
	repeat)
		case $2 in
		yes) campaign_repeat=1 ;;
		no) campaign_repeat='' ;;
		*) die $EXIT_USAGE "$file: line $3: repeat: '$2', expected yes or no" ;;
		esac
		;;
	*) die $EXIT_USAGE "$file: line $3: '$1' before the first section, where only budget and repeat may be" ;;
	esac
}

# Read $file into sections, value and origin
campaign_read()
{
	local line nr=0 section='' key last=''
	local -A line_of

	while IFS= read -r line || [ -n "$line" ]; do
		nr=$((nr + 1))
		case $line in
		''|'#'*) continue ;;
		'['*']')
			last=$section
			section=${line:1:-1}
			[[ $section =~ ^[A-Za-z0-9_-]+$ ]] ||
				die $EXIT_USAGE "$file: line $nr: section name '$section'"
			! is_one_of "$section" "${sections[@]}" ||
				die $EXIT_USAGE "$file: line $nr: a second section '$section', after that of ${origin[$section.]}"
			sections+=("$section")
			parent[$section]=$section
			[ -z "$last" ] || _inherit "$last" "$section"
			origin[$section.]="line $nr"
			continue
			;;
		esac
		[[ $line =~ ^([a-z_.]+)[[:space:]]*=[[:space:]]*(.*)$ ]] ||
			die $EXIT_USAGE "$file: line $nr: expected 'key = value', got '$line'"
		key=${BASH_REMATCH[1]}
		line=${BASH_REMATCH[2]}
		if [ -z "$section" ]; then
			_read_head "$key" "$line" "$nr"
			continue
		fi
		campaign_check_key "$file: line $nr" "$key"
		[ -z "${line_of[$section.${key#matrix.}]-}" ] ||
			die $EXIT_USAGE "$file: line $nr: section '$section' has a '${key#matrix.}' in line ${line_of[$section.${key#matrix.}]} already"
		line_of[$section.${key#matrix.}]=$nr
		_put_key "$section" "$key" "$line" "line $nr"
	done < "$file"
	[ ${#sections[@]} -gt 0 ] || die $EXIT_USAGE "$file: no sections"
}

# The sections that $1 means: one as it is run, or all that a matrix has made of
# one of the file: sets meant, or fails.
_meant_by()
{
	local section

	meant=()
	for section in "${sections[@]}"; do
		[ "$section" != "$1" ] && [ "${parent[$section]}" != "$1" ] ||
			meant+=("$section")
	done
	[ ${#meant[@]} -gt 0 ]
}

# --set's $1, for the sections of the file where $2 is empty, and for those that
# a matrix has made where it is not. A name of the latter has a = of its own.
campaign_override()
{
	local where=${1%%=*} section of_made=''

	[[ $1 == *=* ]] || usage_error "--set: '$1', expected [SECTION.]KEY=VALUE"
	for section in "${parent[@]}"; do
		[[ $1 != "$section"/* ]] || of_made=1
	done
	[ "$of_made" = "${2:+1}" ] || return 0
	for section in "${sections[@]}"; do
		[[ $1 == "$section".*=* ]] || continue
		where=${1#"$section".}
		campaign_check_key --set "${where%%=*}"
		_put_key "$section" "${where%%=*}" "${where#*=}" --set
		return
	done
	[[ -z $of_made ]] && [[ $where != *.* || $where == matrix.* ]] ||
		die $EXIT_USAGE "--set: no section '${1%.*}' in this campaign; there are: ${sections[*]}"
	campaign_check_key --set "$where"
	for section in "${sections[@]}"; do
		_put_key "$section" "$where" "${1#*=}" --set
	done
}

# The values of a matrix's key, a line each: words, or what stands between bars
_axis_values()
{
	if [[ $1 == *'|'* ]]; then
		tr '|' '\n' <<< "$1" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//'
	else
		xargs -n 1 <<< "$1"
	fi
}

# Each section with a matrix becomes one for each combination of its values
_expand()
{
	local section name key words all=() names next

	for section in "${sections[@]}"; do
		names=("$section")
		for key in ${axes[$section]-}; do
			mapfile -t words < <(_axis_values "${value[$section.matrix.$key]}")
			next=()
			for name in "${names[@]}"; do
				_expand_one "$section" "$name" "$key"
			done
			names=("${next[@]}")
		done
		all+=("${names[@]}")
	done
	sections=("${all[@]}")
}

_expand_one()
{
	local section=$1 name=$2 key=$3 word made

	for word in "${words[@]}"; do
		made=$name
		[ "$made" != "$section" ] || made+=/
		made=${made%,}
		[[ $made == */ ]] || made+=,
		# a folder is called so, and a dot ends a section in SECTION.KEY
		made+=$key=${word//[^A-Za-z0-9_+,-]/_}
		! is_one_of "$made" "${next[@]}" ||
			die $EXIT_USAGE "$file: ${origin[$section.matrix.$key]}: matrix.$key: two values are called '${made##*=}'"
		_inherit "$name" "$made"
		origin[$made.]=${origin[$section.]}
		parent[$made]=$section
		axes[$made]=''
		value[$made.$key]=$word
		origin[$made.$key]=${origin[$section.matrix.$key]}
		next+=("$made")
	done
}

# What a section need not say
_defaults()
{
	local section

	for section in "${sections[@]}"; do
		: "${value[$section.suspects]=0}" "${value[$section.expect_skipped]=0}"
		: "${value[$section.expect_replays_lost]=0}"
		: "${value[$section.timeout]=300}"
	done
}

# campaign_load [OVERRIDE]...: read $file as it is to be run
campaign_load()
{
	local set

	campaign_read
	for set; do
		campaign_override "$set" ''
	done
	_expand
	for set; do
		campaign_override "$set" expanded
	done
	_defaults
}

# campaign_only SECTION...: only those, in the campaign's order
campaign_only()
{
	local name section kept=() meant all=()

	for name; do
		_meant_by "$name" ||
			die $EXIT_USAGE "--section: no section '$name' in this campaign; there are: ${sections[*]}"
		all+=("${meant[@]}")
	done
	for section in "${sections[@]}"; do
		! is_one_of "$section" "${all[@]}" || kept+=("$section")
	done
	sections=("${kept[@]}")
}

# The file of fio jobs that section $1 has for noise: one of ours, or a path from
# where the campaign file is
campaign_noise()
{
	case ${value[$1.noise]-} in
	'') ;;
	/*) echo "${value[$1.noise]}" ;;
	*/*) echo "$(dirname "$file")/${value[$1.noise]}" ;;
	*) echo "$ACKPROOF_ROOT/workloads/${value[$1.noise]}" ;;
	esac
}

# The options that section $1's keys are for capture: sets options
campaign_capture_options()
{
	local key mkfs='' mount noise

	options=(--variant "${value[$1.variant]-}")
	for key in $CAPTURE_KEYS; do
		[ -z "${value[$1.$key]+set}" ] ||
			options+=("--${key//_/-}" "${value[$1.$key]}")
	done
	for key in block_size:b sector_size:s; do
		[ -z "${value[$1.${key%:*}]-}" ] ||
			mkfs+=" -${key#*:} size=${value[$1.${key%:*}]}"
	done
	for key in finobt reflink rmapbt; do
		[ -z "${value[$1.$key]-}" ] || mkfs+=" -m $key=${value[$1.$key]}"
	done
	mkfs+=" ${value[$1.mkfs]-}"
	mkfs=${mkfs# }
	[ -z "${mkfs% }" ] || options+=(--mkfs "${mkfs% }")
	mount=${value[$1.mount]-}
	[ -z "${value[$1.logbsize]-}" ] || mount+=${mount:+,}logbsize=${value[$1.logbsize]}
	[ -z "$mount" ] || options+=(--mount "$mount")
	noise=$(campaign_noise "$1")
	[ -z "$noise" ] || options+=(--noise "$noise")
}

# The keys of section $1 as it runs, a line each
campaign_section_lines()
{
	local key

	for key in $OTHER_KEYS $CAPTURE_KEYS $GEOMETRY_KEYS; do
		[ -z "${value[$1.$key]-}" ] || echo "$key = ${value[$1.$key]}"
	done
}
