# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Reading campaign files, and what a section of one is to capture. Needs
# kernel.sh.

# Keys of a section: those that become options of capture, then the rest
CAPTURE_KEYS='writers fsyncs mode sync files blocks delay data_size log_disk log_size mkfs mount'
OTHER_KEYS='variant captures seed points suspects expect expect_skipped expect_replays_lost'

declare -gA value		# SECTION.KEY
sections=()

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

campaign_check_key()
{
	# shellcheck disable=SC2086 # the keys are words
	is_one_of "$2" $CAPTURE_KEYS $OTHER_KEYS ||
		die $EXIT_USAGE "$1: unknown key '$2'; known are: $OTHER_KEYS $CAPTURE_KEYS"
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
		die $EXIT_USAGE "no campaign '$1'; there are: $(basename -a "$ACKPROOF_ROOT"/harness/campaigns/* | xargs)"
}

# Read $file into sections and value
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
				die $EXIT_USAGE "$file: line $nr: a second section '$section'"
			sections+=("$section")
			[ -n "$last" ] || continue
			for key in $CAPTURE_KEYS $OTHER_KEYS; do
				[ -z "${value[$last.$key]+set}" ] ||
					value[$section.$key]=${value[$last.$key]}
			done
			continue
			;;
		esac
		[[ $line =~ ^([a-z_]+)[[:space:]]*=[[:space:]]*(.*)$ ]] ||
			die $EXIT_USAGE "$file: line $nr: expected 'key = value', got '$line'"
		[ -n "$section" ] ||
			die $EXIT_USAGE "$file: line $nr: a key before the first section"
		key=${BASH_REMATCH[1]}
		campaign_check_key "$file: line $nr" "$key"
		[ -z "${line_of[$section.$key]-}" ] ||
			die $EXIT_USAGE "$file: line $nr: section '$section' has a '$key' in line ${line_of[$section.$key]} already"
		line_of[$section.$key]=$nr
		value[$section.$key]=${BASH_REMATCH[2]}
	done < "$file"
	[ ${#sections[@]} -gt 0 ] || die $EXIT_USAGE "$file: no sections"
}

# The options that section $1's keys are for capture: sets options
campaign_capture_options()
{
	local key

	options=(--variant "${value[$1.variant]-}")
	for key in $CAPTURE_KEYS; do
		[ -z "${value[$1.$key]+set}" ] ||
			options+=("--${key//_/-}" "${value[$1.$key]}")
	done
}

# Find a section's mistakes before the first capture, hours earlier than what
# would trip over them. In a subshell: it brings capture's functions.
_check_section()
{
	local section=$1 options
	local point='(([1-9][0-9]*@)?(ack|flush|fua|mark|suspects)|[0-9]+)'

	number captures "${value[$section.captures]-}" 1 10000
	number seed "${value[$section.seed]-}" 0 $((2 ** 52))
	number suspects "${value[$section.suspects]-}" 0 1000000
	number expect_skipped "${value[$section.expect_skipped]-}" 0 100
	number expect_replays_lost "${value[$section.expect_replays_lost]-}" 0 1000000
	case ${value[$section.expect]-} in clean|loss) ;;
	*) die $EXIT_USAGE "expect: '${value[$section.expect]-}', expected clean or loss" ;;
	esac
	[[ ${value[$section.points]-} =~ ^$point(,$point)*$ ]] ||
		die $EXIT_USAGE "points: '${value[$section.points]-}', expected a list of KIND, N@KIND or an entry's number"
	kernel_read_variant "${value[$section.variant]-}"
	# the rest is for capture to say
	campaign_capture_options "$section"
	# shellcheck source=harness/cmd/capture
	. "$ACKPROOF_ROOT/harness/cmd/capture"
	_parse "${options[@]}" folder
}

# Check sections $@
campaign_check()
{
	local section why

	for section; do
		why=$(_check_section "$section" 2>&1) ||
			die $EXIT_USAGE "$file: section $section: ${why#ackproof: }"
	done
}
