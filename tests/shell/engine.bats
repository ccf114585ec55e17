#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the choice of an engine: what each command takes, what it refuses, and
# that a kernel is built for the engine that is to run it.

load lib
load source

setup()
{
	own_folder
}

# A capture whose engine is $1
mkcapture()
{
	rm -rf c
	"$built/tests/shell/mkcapture" c
	jq --arg engine "$1" '. + {engine: $engine}' c/capture.json > new
	mv new c/capture.json
}

see="; see 'ackproof"

@test "an engine that there is not, in every command" {
	mkcapture uml
	usage_error "--engine: 'xen', expected one of uml*" capture --engine xen a
	usage_error "--engine: '', expected one of uml*" replay --engine '' c
	usage_error "--engine: 'uml qemu', expected one of uml*" explain --engine 'uml qemu' c
	usage_error "--engine: 'xen', expected one of uml*" bisect log --engine xen c
	usage_error "--engine: 'xen', expected one of uml*" kernel build --engine xen stock
	usage_error "--engine: 'xen', expected one of uml*" reproduce --engine xen c
	mkcapture xen
	usage_error "$PWD/c/capture.json: unknown engine 'xen'" replay c
	[ ! -e a ]
}

@test "what a guest is to have, and what uml cannot give it" {
	mkcapture uml
	usage_error "--cpus: engine uml has no such choice$see capture --help'" capture --cpus 2 a
	usage_error "--cpus: engine uml has no such choice$see replay --help'" replay --cpus 2 c
	usage_error "--cpus: engine uml has no such choice$see explain --help'" explain --cpus 2 c
	usage_error "--cpus: engine uml has no such choice$see bisect --help'" bisect log --cpus 2 c
	usage_error "--cpus: '0' is not a number from 1 to 64" capture --cpus 0 a
	usage_error "--memory: '10m', expected 64m to 1024g$see*" capture --memory 10m a
	usage_error "--memory: '1x' is not a size like 320m" replay --memory 1x c
	usage_error "--append: more than one line$see*" capture --append $'a\nb' a
	[ ! -e a ]
}

# A QEMU that hangs as soon as it sees KVM, and else does what a guest's init would
fake_qemu()
{
	mkdir bin
	cat > bin/qemu-system-x86_64 <<- 'END'
		#!/bin/bash
		echo "$*" >> "$FAKE_CALLS"
		job=''
		for arg; do
			case $arg in
			kvm) exec sleep 600 ;;
			local,path=*,mount_tag=job,*) job=${arg#local,path=} job=${job%%,*} ;;
			--version) echo 'QEMU emulator version 0' ;;
			esac
		done
		[ -z "$job" ] || echo 0 > "$job/status"
	END
	chmod 755 bin/qemu-system-x86_64
	export FAKE_CALLS=$PWD/calls PATH=$PWD/bin:$PATH
	mkdir kernel
	touch kernel/linux
}

boot_qemu()
{
	# shellcheck disable=SC2016 # expanded in there
	ACKPROOF_ROOT=$top bash -eu -o pipefail -c '
		. "$ACKPROOF_ROOT/harness/lib/common.sh"
		. "$ACKPROOF_ROOT/harness/lib/job.sh"
		engine_load qemu
		guest_cpus=3 guest_append="a=b c"
		job_new "$2"
		job_command "$job" true
		job_run "$1" "$job" 20 0 disk=ram:1024 data=/some/file' ackproof "$PWD/kernel" "$1"
}

@test "qemu: a KVM that hangs costs ten seconds at the most, and only once" {
	[ -w /dev/kvm ] || skip "no /dev/kvm that could hang"
	fake_qemu
	SECONDS=0
	boot_qemu one
	[ $SECONDS -le 10 ]
	[ "$(wc -l < calls)" = 2 ]
	grep -q 'accel tcg' <(tail -n 1 calls)
	[ "$(cat jobs/one/outcome)" = 'exit 0' ]
	SECONDS=0
	boot_qemu two
	[ $SECONDS -le 3 ]
	[ "$(wc -l < calls)" = 3 ]
	run -1 grep -c kvm <(tail -n 1 calls)
	# what was found holds for this program only
	echo '#' >> bin/qemu-system-x86_64
	SECONDS=0
	boot_qemu three
	[ "$(wc -l < calls)" = 5 ]
}

@test "qemu: the guest gets what was asked for, and disks whose flushes are real" {
	fake_qemu
	sed -i 's/kvm) exec sleep 600/kvm) exit 1/' bin/qemu-system-x86_64
	boot_qemu one
	run -0 tail -n 1 calls
	[[ $output == *" -smp 3 -m 513 "* ]]
	[[ $output == *" hung_task_panic=0 a=b c" ]]
	[[ $output == *"file=/some/file,format=raw,if=none,id=disk0,cache=writeback,"* ]]
	[[ $output == *"ACKPROOF_DISKS=disk=/dev/ram0,data=/dev/vda "* ]]
	[[ $output == *"brd.rd_nr=1 brd.rd_size=1024 "* ]]
}

@test "qemu: without the program, how to get it" {
	mkdir hidden
	ln -s /usr/bin/* hidden/
	rm -f hidden/qemu-system-x86_64
	PATH=$PWD/hidden fails_with 77 \
		"ackproof: qemu-system-x86_64 is not installed: run 'make setup', or apt-get install qemu-system-x86" \
		capture --engine qemu a
	[ ! -e a ]
}

@test "qemu: the same variants, for another architecture and with its config" {
	make_source
	make_patches
	tar -cf linux.tar --transform 's,^source,linux-9.9,' source
	export ACKPROOF_PATCHES=$PWD/patches ACKPROOF_TARBALL=$PWD/linux.tar
	echo CONFIG_LATER=y > patches/config/x86_64.config
	um=$(ackproof -q kernel path series)
	x86=$(ackproof -q kernel path --engine qemu series)
	[ "$um" != "$x86" ]
	[ "$(jq -r .arch "$um/variant.json" "$x86/variant.json" | xargs)" = "um x86_64" ]
	grep -qx CONFIG_LATER=y "$x86/config"
	run -1 grep OURS=y "$x86/config"
	grep -qx CONFIG_OURS=y "$um/config"
	grep -qx skips "$x86/linux"
}

@test "local: what it takes, and what it does not" {
	mkcapture local
	usage_error "engine local runs on this machine's own kernel: no variant, no source and no patch$see*" \
		capture --engine local --variant stock a
	usage_error "engine local runs on this machine's own kernel: no variant, no source and no patch$see*" \
		replay --variant stock c
	usage_error "--memory: engine local has no such choice$see*" capture --engine local --memory 1g a
	usage_error "--jobs: 2, expected 1: engine local runs one at a time$see*" replay --jobs 2 c
	usage_error "--engine: local runs on this machine's own kernel: there is nothing to build$see*" \
		kernel build --engine local stock
	usage_error "--disks: only with --engine local$see*" capture --disks a,b a
	usage_error "--disks: '/dev/null', expected DATA,LOG$see*" capture --engine local --disks /dev/null a
	usage_error "--disks: '/dev/null' is not a block device$see*" \
		capture --engine local --disks /dev/null,/dev/zero a
	usage_error "--disks: they have a size: no --data-size and no --log-disk$see*" \
		capture --engine local --disks a,b --log-disk 1g a
	usage_error "--force: only with --disks$see*" capture --force a
	[ ! -e a ]
}
