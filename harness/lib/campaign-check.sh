# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Find a campaign's mistakes before its first capture, hours earlier than what
# would trip over them. Needs campaign.sh and fio.sh.

# For what section $1 wants, where no option of capture says it
_check_geometry()
{
	local section=$1 key

	for key in finobt reflink rmapbt; do
		[[ ${value[$section.$key]-} =~ ^[01]?$ ]] ||
			die $EXIT_USAGE "$key: '${value[$section.$key]}', expected 0 or 1"
	done
	for key in block_size sector_size; do
		[ -z "${value[$section.$key]-}" ] ||
			bytes "$key" "${value[$section.$key]}" > /dev/null
	done
	[[ ${value[$section.logbsize]-} =~ ^(|16k|32k|64k|128k|256k)$ ]] ||
		die $EXIT_USAGE "logbsize: '${value[$section.logbsize]}', expected 16k, 32k, 64k, 128k or 256k"
}

# Nobody knows which geometries are possible but mkfs.xfs. Needs what capture's
# _parse sets.
_check_mkfs()
{
	local image out

	command -v mkfs.xfs > /dev/null || return 0	# capture says so, too
	image=$(mktemp)
	truncate -s "$data_size" "$image"
	# shellcheck disable=SC2086 # the options are words
	out=$(mkfs.xfs -N $mkfs_line "$image" 2>&1) || {
		rm -f "$image"
		die $EXIT_USAGE "mkfs.xfs does not take '$mkfs_line': $(grep -vE '^(Usage|/\*|$)' <<< "$out" | head -n 1)"
	}
	rm -f "$image"
}

# In a subshell: it brings capture's functions.
_check_section()
{
	local section=$1 options key noise
	local point='(([1-9][0-9]*@)?(ack|flush|fua|mark|suspects)|[0-9]+)'

	for key in variant captures seed points expect; do
		[ -n "${value[$section.$key]-}" ] ||
			die $EXIT_USAGE "has no $key, and inherits none"
	done
	number captures "${value[$section.captures]}" 1 10000
	[ "${value[$section.seed]}" = new ] ||
		number seed "${value[$section.seed]}" 0 $((2 ** 52))
	number suspects "${value[$section.suspects]}" 0 1000000
	number expect_skipped "${value[$section.expect_skipped]}" 0 100
	number expect_replays_lost "${value[$section.expect_replays_lost]}" 0 1000000
	[ -z "${value[$section.budget]-}" ] ||
		seconds budget "${value[$section.budget]}" > /dev/null
	case ${value[$section.expect]} in clean|loss|any) ;;
	*) die $EXIT_USAGE "expect: '${value[$section.expect]}', expected clean, loss or any" ;;
	esac
	[ "${value[$section.expect]}" != clean ] || [ "${value[$section.expect_replays_lost]}" -eq 0 ] ||
		die $EXIT_USAGE "expect_replays_lost: ${value[$section.expect_replays_lost]}, of a section that is expected to be clean"
	[[ ${value[$section.points]} =~ ^$point(,$point)*$ ]] ||
		die $EXIT_USAGE "points: '${value[$section.points]}', expected a list of KIND, N@KIND or an entry's number"
	[ "${value[$section.engine]-}" != local ] ||
		die $EXIT_USAGE "engine: 'local' runs one job at a time, and no variants"
	kernel_read_variant "${value[$section.variant]}"
	_check_geometry "$section"
	noise=$(campaign_noise "$section")
	[ -z "$noise" ] || fio_check noise "$noise"
	# the rest is for capture to say
	campaign_capture_options "$section"
	# shellcheck source=harness/cmd/capture
	. "$ACKPROOF_ROOT/harness/cmd/capture"
	_parse "${options[@]}" folder
	_check_mkfs
}

# Where section $1 has what message $2 is about: the line of the key that it
# begins with, if that is one
_place()
{
	local key=${2%%:*}

	key=${key#--}
	key=${key//-/_}
	# these are put together of several
	case $2 in "unknown variant"*) key=variant ;; esac
	echo "${origin[$1.$key]:-${origin[$1.]}}"
}

# Check sections $@
campaign_check()
{
	local section why

	for section; do
		why=$(_check_section "$section" 2>&1) && continue
		why=${why#ackproof: }
		die $EXIT_USAGE "$file: $(_place "$section" "$why"): section $section: $why"
	done
	[ -z "$campaign_repeat" ] || [ -n "$campaign_budget" ] ||
		die $EXIT_USAGE "$file: it repeats until its budget is used: expected a budget, or --budget"
}
