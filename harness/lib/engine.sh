# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The engine: how a variant is run. Each is a file of harness/engine, which sets
#
#	engine_takes	the guest's options that it can do something with
#	engine_cpus	the processors that a guest has unless told otherwise
#	engine_memory	its memory in MiB, besides the disks in there
#
# and has the functions
#
#	engine_arch	prints the architecture of the kernels that it boots, or
#			nothing: it runs on this machine's own kernel
#	engine_prepare	before the first boot: what it needs is here, or it says
#			what is not, with EXIT_CANNOT
#	engine_boot	see uml.sh
#	engine_record	prints how the last guest was run, in JSON
#	engine_check	for 'ackproof doctor': prints a line "ok", a tab and how it
#			works, or for each thing that is missing a line "no", a tab,
#			what that is, a tab, and the command that mends it

ENGINES=(uml qemu local)

# What the user put on the command line. guest_args is the same, for another
# command.
engine_asked='' guest_append='' guest_memory='' guest_cpus=''
guest_args=()

# engine_load NAME
engine_load()
{
	engine=$1
	# shellcheck source=harness/engine/uml.sh
	. "$ACKPROOF_ROOT/harness/engine/$engine.sh"
}

# Take one of the options that every command that boots guests has. Returns 1 if
# $1 is none of them; they take one argument each.
guest_option()
{
	case $1 in
	--engine)
		[[ " ${ENGINES[*]} " == *" $2 "* ]] && [[ $2 != *' '* ]] ||
			usage_error "--engine: '$2', expected one of ${ENGINES[*]}"
		engine_asked=$2
		;;
	--append)
		[[ $2 != *[$'\n\r']* ]] || usage_error "$1: more than one line"
		guest_append=$2
		;;
	--memory)
		# in MiB
		guest_memory=$(bytes "$1" "$2") || exit
		guest_memory=$((guest_memory >> 20))
		[ "$guest_memory" -ge 64 ] && [ "$guest_memory" -le $((1 << 20)) ] ||
			usage_error "$1: '$2', expected 64m to 1024g"
		;;
	--cpus)
		number "$1" "$2" 1 64
		guest_cpus=$2
		;;
	*)
		return 1
		;;
	esac
	guest_args+=("$1" "$2")
}

GUEST_OPTIONS_HELP='      --engine NAME  how to run the kernel: uml (User Mode Linux), qemu, or local
                     (on the kernel of this machine, as root)
      --append WORDS more words for the kernel command line of a guest
      --memory SIZE  of a guest, besides its disks in there
      --cpus N       processors of a guest (default: uml 1, qemu 2)'

# engine_choose NAME [VARIANT]: load the engine that was asked for, or else NAME,
# and see whether it can do all that was asked for, and VARIANT
engine_choose()
{
	local name variant=${2-}

	engine_load "${engine_asked:-$1}"
	for name in append memory cpus; do
		local -n value=guest_$name
		[ -z "$value" ] || [[ " $engine_takes " == *" $name "* ]] ||
			usage_error "--$name: engine $engine has no such choice"
		unset -n value
	done
	[ -n "$(engine_arch)" ] ||
		[ -z "$variant${kernel_args[*]-}" ] ||
		usage_error "engine $engine runs on this machine's own kernel: no variant, no source and no patch"
}

# engine_of_capture CAPTURE [VARIANT]: the same with the engine that recorded it
engine_of_capture()
{
	local name

	name=$(jq -r '.engine // "uml"' "$1/capture.json" 2> /dev/null) || name=uml
	[[ " ${ENGINES[*]} " == *" $name "* ]] && [[ $name != *' '* ]] ||
		die $EXIT_USAGE "$1/capture.json: unknown engine '$name'"
	engine_choose "$name" "${2-}"
}

# engine_disks PREFIX DISK...
#
# What engine_boot has to do for its disks: sets disk_files, those that the disks are in,
# of which the Nth is /dev/PREFIX and the Nth letter in the guest; disks, what init
# is to be told; and rams and ram_kib, how many are in memory, and of what size.
engine_disks()
{
	local prefix=$1 disk name file letters=abcdefghijklmnop

	shift
	disks='' disk_files=() rams=0 ram_kib=0
	for disk; do
		name=${disk%%=*}
		file=${disk#*=}
		case $file in
		ram:*)
			disks+=,$name=/dev/ram$rams
			rams=$((rams + 1))
			[ "${file#ram:}" -le $ram_kib ] || ram_kib=${file#ram:}
			;;
		*)
			disks+=,$name=/dev/$prefix${letters:${#disk_files[@]}:1}
			disk_files+=("$file")
			;;
		esac
	done
	disks=${disks#,}
}

# The processors of a guest
guest_width()
{
	echo "${guest_cpus:-$engine_cpus}"
}

# The memory of a guest in MiB, besides its disks in there
guest_mib()
{
	echo "${guest_memory:-$engine_memory}"
}

engine_load uml
