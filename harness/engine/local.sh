# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Engine local: the job on this machine's own kernel, as root. Nothing is booted:
# harness/guest/local makes a mount namespace look as a guest does. What a killed
# run leaves in the kernel, which knows of no job, is removed by the next one.

# shellcheck disable=SC2034 # they are for lib/engine.sh
engine_takes='' engine_cpus=1 engine_memory=0

# Those of guest/capture and crashcheck; each may be on one that is further right
LOCAL_DEVICES=(ackproof-snap ackproof-log ackproof-delay)
LOCAL_LOCK=${ACKPROOF_LOCAL_LOCK:-/run/ackproof-local.lock}
_local_lock=''

engine_arch()
{
	:
}

engine_prepare()
{
	local missing

	missing=$(engine_check | sed -n 's/^no\t\([^\t]*\)\t\(.*\)/\1: \2/p' | head -n 1)
	[ -z "$missing" ] || die $EXIT_CANNOT "engine local: $missing"
	_lock_machine
	_sweep
}

engine_record()
{
	jq -n --argjson cpus "$(nproc)" '{cpus: $cpus}'
}

engine_check()
{
	local target missing=''

	if [ "$(id -u)" -ne 0 ]; then
		printf 'no\tneeds root\tsudo harness/ackproof ...\n'
		return
	fi
	if ! command -v dmsetup > /dev/null; then
		printf 'no\tdmsetup is not installed\tapt-get install dmsetup\n'
		return
	fi
	if ! dmsetup version > /dev/null 2>&1; then
		modprobe -q dm-mod 2> /dev/null || :
	fi
	if ! dmsetup version > /dev/null 2>&1; then
		printf 'no\tthe kernel has no device-mapper\tmodprobe dm-mod\n'
		return
	fi
	for target in log-writes delay snapshot; do
		modprobe -q "dm-$target" 2> /dev/null || :
		dmsetup targets | grep -q "^$target " && continue
		printf 'no\tthe kernel has no dm-%s\tmodprobe dm-%s\n' $target $target
		missing=1
	done
	modprobe -q loop 2> /dev/null || :
	if [ ! -e /dev/loop-control ]; then
		printf 'no\tthe kernel has no loop devices\tmodprobe loop\n'
		missing=1
	fi
	modprobe -q xfs 2> /dev/null || :
	if ! grep -qw xfs /proc/filesystems; then
		printf 'no\tthe kernel has no XFS\tmodprobe xfs\n'
		missing=1
	fi
	[ -n "$missing" ] || printf 'ok\ton kernel %s\n' "$(uname -r)"
}

# One at a time on a machine: the names of device-mapper are for all of it. The
# lock is held until this process ends.
_lock_machine()
{
	[ -z "$_local_lock" ] || return 0
	exec {_local_lock}> "$LOCAL_LOCK"
	flock -n "$_local_lock" ||
		die $EXIT_CANNOT "another ackproof runs on this machine's kernel: engine local is for one at a time"
}

# In memory, whatever the job's folder is on
_ram_dir()
{
	local dir

	for dir in /dev/shm /run; do
		[ "$(stat -f -c %T "$dir" 2> /dev/null)" != tmpfs ] || break
	done
	echo "$dir/ackproof-local"
}

# The loop devices on files of ours: of a job, or of a disk in memory
_our_loops()
{
	local dir name file

	dir=$(_ram_dir)
	for name in /sys/block/loop*/loop/backing_file; do
		[ -r "$name" ] || continue
		file=$(cat "$name")
		case $file in
		"$(realpath -m "$ACKPROOF_JOBS")"/*|"$dir"/*)
			name=${name#/sys/block/}
			echo "/dev/${name%%/*}"
			;;
		esac
	done
}

# Remove what a killed run has left: its mounts went with its processes, and the
# loop devices that were told to go with their last user
_sweep()
{
	local name loop dir i

	for name in "${LOCAL_DEVICES[@]}"; do
		for ((i = 0; i < 50; i++)); do
			dmsetup info "$name" > /dev/null 2>&1 || break
			# a mount takes its time to go
			dmsetup remove "$name" > /dev/null 2>&1 || sleep 0.1
		done
		! dmsetup info "$name" > /dev/null 2>&1 ||
			die $EXIT_CANNOT "cannot remove the device $name that a run has left: it is in use"
	done
	for loop in $(_our_loops); do
		losetup -d "$loop" || :
	done
	dir=$(_ram_dir)
	[ ! -d "$dir" ] || [ -L "$dir" ] || rm -rf "$dir"
}

# For 'ackproof clean', which may be told to clean where nothing can be left. One
# that runs is left alone.
engine_clean()
{
	[ "$(id -u)" -eq 0 ] && dmsetup version > /dev/null 2>&1 || return 0
	exec {_local_lock}> "$LOCAL_LOCK"
	if flock -n "$_local_lock"; then
		_sweep
	else
		note "engine local is in use"
	fi
	exec {_local_lock}>&-
	_local_lock=''
}

# See uml.sh. A FILE may be a block device, too. The kernel folder is of no use
# here, and all that the kernel said meanwhile is in JOB/dmesg.
engine_boot()
{
	local job=$2 timeout=$3 cpu=$4 disk file dir loop disks=() loops=() status=0 fd

	_lock_machine
	_sweep
	dir=$(_ram_dir)
	mkdir -m 700 "$dir" || die $EXIT_CANNOT "$dir: somebody else has it"
	for disk in "${@:5}"; do
		file=${disk#*=}
		if [ ! -b "$file" ]; then
			case $file in
			ram:*)
				truncate -s "${file#ram:}K" "$dir/${disk%%=*}"
				file=$dir/${disk%%=*}
				;;
			esac
			loop=$(losetup --find --show "$file") ||
				die $EXIT_CANNOT "no loop device for $file"
			# held open, and told to go once it is not any more,
			# however that comes about
			exec {fd}< "$loop"
			losetup -d "$loop"
			loops+=("$fd")
			file=$loop
		fi
		disks+=("${disk%%=*}=$file")
	done
	"$ACKPROOF_BIN/supervise" --own-group --timeout "$timeout" \
		unshare --mount --propagation private \
		bash "$ACKPROOF_ROOT/harness/guest/local" "$job" "${disks[@]}" \
		< /dev/null > "$job/console" 2>&1 || status=$?
	for fd in "${loops[@]}"; do
		exec {fd}<&-
	done
	_sweep
	return $status
}
