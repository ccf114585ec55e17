# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Engine uml: boot a variant as User Mode Linux, an ordinary process of an
# ordinary user. The root file system is the host's, read-only.

# engine_boot KERNEL JOB TIMEOUT CPU DISK...
#
# Run the script JOB/command in a guest of the kernel in folder KERNEL, pinned
# to core CPU, for TIMEOUT seconds at the most. A DISK is NAME=FILE, or
# NAME=ram:KIB for one in the guest's memory that starts as zeros. Leaves the
# console's output in JOB/console, and what harness/guest/init leaves. Returns
# supervise's exit status: 124 after a timeout.
engine_boot()
{
	local kernel=$1 job=$2 timeout=$3 cpu=$4 disk name file disks=''
	local args=() ubds=0 rams=0 ram_kib=0 memory=384

	shift 4
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
			args+=("ubd$ubds=$file")
			disks+=,$name=/dev/ubd$(_nth_letter $ubds)
			ubds=$((ubds + 1))
			;;
		esac
	done
	# the guest's memory is a sparse file: only what it touches is used
	memory=$((memory + rams * ram_kib / 1024))

	# stdin is empty, and the console is a pipe: UML polls both
	TMPDIR=$(_memory_dir) "$ACKPROOF_BIN/supervise" --own-group --cpu "$cpu" \
		--timeout "$timeout" "$kernel/linux" "mem=${memory}M" \
		root=none rootfstype=hostfs rootflags=/ ro \
		init="$ACKPROOF_BIN/init" ACKPROOF_JOB="$job" \
		ACKPROOF_JOBFS=hostfs ACKPROOF_DISKS="${disks#,}" \
		"${args[@]}" brd.rd_nr=$rams brd.rd_size=$ram_kib \
		con=null con0=null,fd:1 loglevel=5 hung_task_panic=0 \
		uml_dir="$job/" umid=uml < /dev/null 2>&1 | cat > "$job/console"
	return "${PIPESTATUS[0]}"
}

_nth_letter()
{
	local letters=abcdefghijklmnop

	echo "${letters:$1:1}"
}

# The guest's memory is mapped from a file there, which has no name any more
_memory_dir()
{
	if [ -w /dev/shm ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi
}
