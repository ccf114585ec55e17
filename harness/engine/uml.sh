# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Engine uml: boot a variant as User Mode Linux, an ordinary process of an
# ordinary user. The root file system is the host's, read-only.

# shellcheck disable=SC2034 # they are for lib/engine.sh
engine_takes='append memory' engine_cpus=1 engine_memory=384

engine_arch()
{
	echo um
}

engine_prepare()
{
	:
}

engine_record()
{
	jq -n --argjson memory "$(guest_mib)" --arg append "$guest_append" \
		'{cpus: 1, memory_mib: $memory, append: $append}'
}

# All that it needs is a place for its memory
engine_check()
{
	local dir free_mib

	dir=$(_memory_dir)
	free_mib=$(($(df --output=avail -k "$dir" | tail -n 1) >> 10))
	if [ "$(uname -m)" != x86_64 ]; then
		printf 'no\tthis machine is a %s, User Mode Linux needs x86_64\ta machine that is\n' "$(uname -m)"
	elif [ "$free_mib" -lt 512 ]; then
		printf 'no\t%s, where the guests\x27 memory is, has %d MiB free, expected 512\tmount -o remount,size=1g %s\n' \
			"$dir" "$free_mib" "$dir"
	else
		printf 'ok\tone processor a guest, no KVM, no root\n'
	fi
}

# engine_boot KERNEL JOB TIMEOUT CPU DISK...
#
# Run the script JOB/command in a guest of the kernel in folder KERNEL, pinned
# to as many cores as it has processors, from core CPU on, for TIMEOUT seconds at the
# most. A DISK is NAME=FILE, or NAME=ram:KIB for one in the guest's memory that
# starts as zeros. Leaves the console's output in JOB/console, and what
# harness/guest/init leaves. Returns supervise's exit status: 124 after a timeout.
engine_boot()
{
	local kernel=$1 job=$2 timeout=$3 cpu=$4 disks disk_files rams ram_kib
	local args=() append=() memory i

	engine_disks ubd "${@:5}"
	for i in "${!disk_files[@]}"; do
		args+=("ubd$i=${disk_files[i]}")
	done
	# the guest's memory is a sparse file: only what it touches is used
	memory=$(($(guest_mib) + rams * ram_kib / 1024))
	read -ra append <<< "$guest_append"
	# stdin is empty, and the console is a pipe: UML polls both
	TMPDIR=$(_memory_dir) "$ACKPROOF_BIN/supervise" --own-group --cpu "$cpu" \
		--timeout "$timeout" "$kernel/linux" "mem=${memory}M" \
		root=none rootfstype=hostfs rootflags=/ ro \
		init="$ACKPROOF_BIN/init" ACKPROOF_JOB="$job" \
		ACKPROOF_JOBFS=hostfs ACKPROOF_DISKS="$disks" \
		"${args[@]}" brd.rd_nr=$rams brd.rd_size=$ram_kib \
		con=null con0=null,fd:1 loglevel=5 hung_task_panic=0 \
		uml_dir="$job/" umid=uml "${append[@]}" \
		< /dev/null 2>&1 | cat > "$job/console"
	return "${PIPESTATUS[0]}"
}

# The guest's memory is mapped from a file there, which has no name any more
_memory_dir()
{
	if [ -w /dev/shm ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi
}
