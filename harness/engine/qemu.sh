# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Engine qemu: boot a variant on a machine of QEMU, which may have several
# processors. The root file system is the host's by 9p, read-only.

# shellcheck disable=SC2034 # they are for lib/engine.sh
engine_takes='append memory cpus' engine_cpus=2 engine_memory=512

QEMU=qemu-system-x86_64
# A kernel says that it finds no root in a second with KVM, and in three without
PROBE_SECONDS=8
_accel=''

engine_arch()
{
	echo x86_64
}

engine_prepare()
{
	need $QEMU qemu-system-x86
}

engine_record()
{
	_find_accel "$kernel_dir"
	jq -n --argjson cpus "$(guest_width)" --argjson memory "$(guest_mib)" \
		--arg append "$guest_append" --arg accel "$_accel" \
		--arg version "$($QEMU --version | head -n 1)" \
		'{cpus: $cpus, memory_mib: $memory, append: $append,
		  accel: $accel, qemu: $version}'
}

engine_check()
{
	local probe kernel

	if ! command -v $QEMU > /dev/null; then
		printf 'no\t%s is not installed\tapt-get install --no-install-recommends qemu-system-x86\n' $QEMU
		return
	fi
	kernel=$(_any_kernel)
	if probe=$(_probe kvm "$kernel"); then
		if [ -n "$kernel" ]; then
			_remember kvm	# whatever was found before
			printf 'ok\tKVM: a kernel booted in %s s\n' "$probe"
		else
			printf 'ok\tKVM may work: see again once a kernel is built\n'
		fi
	elif probe=$(_probe tcg "$kernel"); then
		_remember tcg
		printf 'ok\twithout KVM, which is slow: %s; without it, %s booted in %s s\n' \
			"$(_no_kvm)" "$([ -n "$kernel" ] && echo a kernel || echo a boot sector)" "$probe"
	else
		printf 'no\t%s boots nothing: %s\tapt-get install --reinstall qemu-system-x86 seabios\n' \
			$QEMU "${probe:-no answer after $PROBE_SECONDS s}"
	fi
}

# A kernel for this engine that is built, if any is
_any_kernel()
{
	local file

	for file in "$ACKPROOF_BUILD"/kernel/out/*/variant.json; do
		[ -f "${file%/*}/linux" ] || continue
		if jq -e '.arch == "x86_64"' "$file" > /dev/null; then
			echo "${file%/*}"
			return
		fi
	done
}

# Why there is no KVM, as far as can be told without it
_no_kvm()
{
	if [ ! -e /dev/kvm ]; then
		echo "there is no /dev/kvm"
	elif [ ! -w /dev/kvm ]; then
		echo "/dev/kvm is not for this user"
	else
		echo "with /dev/kvm a machine does not boot"
	fi
}

# A disk whose first sector says OK on the serial line and switches the machine
# off by the device at port 0xf4, whatever the kernel that is to come
_boot_sector()
{
	# mov dx, 0x3f8; mov al, 'O'; out dx, al; mov al, 'K'; out dx, al
	printf '\xba\xf8\x03\xb0O\xee\xb0K\xee'
	# mov dx, 0xf4; mov al, 0; out dx, al; then for ever: hlt
	printf '\xba\xf4\x00\xb0\x00\xee\xf4\xeb\xfd'
	head -c 492 /dev/zero
	printf '\x55\xaa'
}

# _probe ACCELERATOR KERNEL
#
# Whether that kernel boots, as far as to the panic that it has no root; or a boot
# sector where there is none, which says less: /dev/kvm may open, tell its version,
# run that, and hang for ever in a kernel. Prints in how many seconds, or what QEMU
# said.
_probe()
{
	local dir out='' args started=${EPOCHREALTIME/./} took answer=OK

	[ "$1" != kvm ] || [ -w /dev/kvm ] || return 1
	dir=$(mktemp -d)
	_boot_sector > "$dir/disk"
	args=(-drive "file=$dir/disk,format=raw,if=ide")
	if [ -n "$2" ]; then
		args=(-kernel "$2/linux" -append 'console=ttyS0 panic=-1')
		answer='Kernel panic'
	fi
	"$ACKPROOF_BIN/supervise" --own-group --timeout $PROBE_SECONDS \
		$QEMU -machine pc -accel "$1" -cpu "$(_model "$1")" -m 256 \
		-nodefaults -no-reboot -display none -serial "file:$dir/serial" \
		-device isa-debug-exit,iobase=0xf4,iosize=1 "${args[@]}" \
		< /dev/null > "$dir/out" 2>&1 || :
	out=$(grep -v warning: "$dir/out" | head -n 1) || :
	if ! grep -q "$answer" "$dir/serial" 2> /dev/null; then
		rm -r "$dir"
		echo "$out"
		return 1
	fi
	rm -r "$dir"
	took=$((${EPOCHREALTIME/./} - started))
	printf '%d.%d\n' $((took / 1000000)) $((took / 100000 % 10))
}

# The processor for an accelerator: all that it can do
_model()
{
	if [ "$1" = kvm ]; then echo host; else echo max; fi
}

# Where the probe's result is kept: it holds for this boot of this machine, this
# QEMU and this user
_accel_file()
{
	local program key

	program=$(realpath "$(command -v $QEMU)")
	key=$({
		cat /proc/sys/kernel/random/boot_id
		stat -c '%n %s %Y' "$program"
		id -u
		[ ! -w /dev/kvm ] || echo writable
	} | sha256sum | cut -c 1-12)
	echo "$ACKPROOF_BUILD/engine/qemu-$key"
}

# Where it cannot be kept, it is found again each time.
_remember()
{
	local file

	file=$(_accel_file)
	mkdir -p "${file%/*}" 2> /dev/null && [ -w "${file%/*}" ] || return 0
	replace_file "$file" echo "$1"
}

# Set _accel, by a probe with kernel $1 if need be: of several guests that start at once, one
# probes and the others wait for it
_find_accel()
{
	local file fd=''

	[ -z "$_accel" ] || return 0
	file=$(_accel_file)
	if mkdir -p "${file%/*}" 2> /dev/null && [ -w "${file%/*}" ]; then
		exec {fd}> "$file.lock"
		flock "$fd"
	fi
	if [ -s "$file" ]; then
		_accel=$(cat "$file")
	elif _probe kvm "$1" > /dev/null; then
		_accel=kvm
	else
		_accel=tcg
		note "no KVM: $(_no_kvm); QEMU is slow without it"
	fi
	_remember "$_accel"
	[ -z "$fd" ] || exec {fd}>&-
}

# See uml.sh
engine_boot()
{
	local kernel=$1 job=$2 timeout=$3 cpu=$4 disks disk_files rams ram_kib
	local args=() memory width i
	local p9=trans=virtio,version=9p2000.L,msize=262144

	_find_accel "$kernel"
	engine_disks vd "${@:5}"
	for i in "${!disk_files[@]}"; do
		# a write cache that the guest sees, and each flush an
		# fdatasync(2) here; what is discarded is gone, as with ubd
		args+=(-drive "file=${disk_files[i]},format=raw,if=none,id=disk$i,cache=writeback,aio=threads,discard=unmap"
			-device "virtio-blk-pci,drive=disk$i")
	done
	memory=$(($(guest_mib) + rams * ram_kib / 1024))
	width=$(guest_width)
	if [ "$_accel" = kvm ]; then
		args+=(-accel kvm)
	else
		args+=(-accel "tcg,thread=multi")
	fi

	"$ACKPROOF_BIN/supervise" --own-group --cpu "$cpu" --cpus "$width" \
		--timeout "$timeout" $QEMU -machine pc \
		-cpu "$(_model "$_accel")" -smp "$width" -m "$memory" \
		-nodefaults -no-user-config -no-reboot -display none -serial stdio \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$job,mount_tag=job,security_model=none,multidevs=remap" \
		"${args[@]}" -kernel "$kernel/linux" -append "console=ttyS0 \
root=root rootfstype=9p rootflags=$p9,cache=loose ro \
init=$ACKPROOF_BIN/init ACKPROOF_JOBFS=9p ACKPROOF_JOBTAG=job \
ACKPROOF_JOB=$p9,cache=mmap ACKPROOF_DISKS=$disks \
brd.rd_nr=$rams brd.rd_size=$ram_kib \
panic=-1 loglevel=5 hung_task_panic=0${guest_append:+ $guest_append}" \
		< /dev/null 2>&1 | cat > "$job/console"
	return "${PIPESTATUS[0]}"
}
