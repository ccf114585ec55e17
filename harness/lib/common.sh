# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What all commands share: talking, failing, and where things are.
#
# ACKPROOF_ROOT is the project's folder, set by the entry. All that is built
# or run lives below ACKPROOF_BUILD.

ACKPROOF_VERSION=0.1.0
# guests know these by their absolute paths only
ACKPROOF_BUILD=$(realpath -m "${ACKPROOF_BUILD:-$ACKPROOF_ROOT/build}")
ACKPROOF_BIN=$ACKPROOF_BUILD/bin
ACKPROOF_RESULTS=$(realpath -m "${ACKPROOF_RESULTS:-$ACKPROOF_ROOT/results}")
PATCHES=${ACKPROOF_PATCHES:-$ACKPROOF_ROOT/kernel-patches}

# mkfs.xfs and dmsetup are there, where an ordinary user does not look
PATH=$PATH:/usr/sbin:/sbin

# Exit statuses, the same as those of the C tools
EXIT_LOSS=1
EXIT_USAGE=2
EXIT_CANNOT=77
EXIT_UNTESTABLE=125	# for git bisect run: not good, not bad

# die STATUS MESSAGE...
die()
{
	local status=$1

	shift
	_end_progress
	printf 'ackproof: %s\n' "$*" >&2
	exit "$status"
}

# Talk goes to stderr, data to stdout.
note()
{
	[ -z "${quiet-}" ] || return 0
	_end_progress
	printf '%s\n' "$*" >&2
}

# One line that is written over and over: only on a terminal.
_progress_shown=''
progress()
{
	[ -z "${quiet-}" ] && [ -t 2 ] || return 0
	printf '\r\033[K%s' "$*" >&2
	_progress_shown=1
}

_end_progress()
{
	[ -z "$_progress_shown" ] || printf '\r\033[K' >&2
	_progress_shown=''
}

# need PROGRAM PACKAGE: the program, or a message that says how to get it
need()
{
	command -v "$1" > /dev/null ||
		die $EXIT_CANNOT "$1 is not installed: run 'make setup', or apt-get install $2"
}

# number NAME VALUE MIN MAX: a whole number in that range, or a usage error
number()
{
	[[ $2 =~ ^(0|[1-9][0-9]{0,17})$ ]] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] ||
		die $EXIT_USAGE "$1: '$2' is not a number from $3 to $4"
}

# bytes NAME SIZE: a size like 320m in bytes. In $(...), end with "|| exit": where
# errors are looked at, in a condition, they do not end what they happen in.
bytes()
{
	local shift

	[[ $2 =~ ^([1-9][0-9]{0,8})([kmgKMG]?)$ ]] ||
		die $EXIT_USAGE "$1: '$2' is not a size like 320m"
	case ${BASH_REMATCH[2]} in
	[kK]) shift=10 ;;
	[mM]) shift=20 ;;
	[gG]) shift=30 ;;
	*) shift=0 ;;
	esac
	echo $((BASH_REMATCH[1] << shift))
}

# Guests and make(1) take no folder whose name has a blank, a comma or a colon.
plain_path()
{
	[[ $1 != *[[:space:],:\"]* ]] ||
		die $EXIT_CANNOT "'$1': blanks, quotes, commas and colons in a folder's name are not supported"
}

# Replace file $1 by what the rest of the line prints: whole, or not at all
replace_file()
{
	local file=$1

	shift
	"$@" > "$file.new" || return
	mv "$file.new" "$file"
}

# lock FILE WHAT: hold it until this process ends; fails if another one does, or
# has just removed it
lock()
{
	local fd

	exec {fd}> "$1"
	flock -n "$fd" && [ "/proc/$BASHPID/fd/$fd" -ef "$1" ] ||
		die $EXIT_CANNOT "$2 is in use by another ackproof"
}

usage_error()
{
	die $EXIT_USAGE "$*; see 'ackproof $command --help'"
}
