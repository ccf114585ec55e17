#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards captures that travel: what is exported is imported as it was, and an
# archive that is damaged, cut, or of another make is refused by name, with
# nothing left behind.

load lib

setup()
{
	own_folder
	"$built/tests/shell/mkcapture" lost loss
}

# Nothing may be left of a job, nor beside what was asked for
teardown()
{
	local left

	left=$(find . -path './jobs/*' -o -name '*.new' -o -name '*.import')
	[ -z "$left" ] || echo "left: $left"
	[ -z "$left" ]
}

exported()
{
	make_kernel <<< '#!/bin/true'
	ackproof -q capture export lost lost.tar
}

# flip FILE OFFSET: change one byte
flip()
{
	local byte

	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059 # the format is the byte
	printf "\\x$(printf %02x $((byte ^ 1)))" |
		dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# The byte that member $1 of lost.tar starts at: its header
member_at()
{
	tar -tvR -f lost.tar | sed -nE "s,^block ([0-9]+): .* $1$,\1,p" |
		awk '{ print $1 * 512 }'
}

# The archive is refused with that message, and leaves no trace
refused()
{
	fails_with 1 "ackproof: $1: $2" capture import "$1" there
	[ ! -e there ]
	[ -z "$(ls jobs)" ]
}

# Members as given, without the checks of export
pack()
{
	tar --format=ustar --owner=0 --group=0 --numeric-owner --mode=0644 \
		--mtime=@0 "$@"
}

@test "an imported capture is what was exported" {
	echo 'what fsync did' > lost/stats
	seq 10000 > lost/trace
	exported
	run -0 --separate-stderr ackproof capture import lost.tar there/it
	[ -z "$output" ]
	[ "$stderr" = "imported there/it" ]
	diff -r lost there/it
	# what is large is packed
	[ "$(tar -tf lost.tar | grep -cE '^(log|trace|kernel/linux)\.zst$')" = 3 ]
	[ "$(ackproof audit --json lost | jq 'del(.seconds)')" = \
		"$(ackproof audit --json there/it | jq 'del(.seconds)')" ]
	# and gives the same archive again
	ackproof -q capture export there/it again.tar
	cmp lost.tar again.tar
}

@test "an archive is a tar of hashed members for any other program" {
	local sum size name

	exported
	mkdir x
	tar -xf lost.tar -C x
	zstd -qd x/log.zst
	cmp lost/log x/log
	[ "$(head -n 1 x/MANIFEST)" = "ackproof capture 1" ]
	tail -n +2 x/MANIFEST > lines
	[ "$(wc -l < lines)" = 7 ]
	while read -r sum size name; do
		[ "$(stat -c %s "x/$name")" = "$size" ]
		[ "$(xxhsum -H2 < "x/$name" | cut -d ' ' -f 1)" = "$sum" ]
	done < lines
	# a packed log can be looked into as it is
	"$built/bin/lwlog" check x/log.zst
}

@test "a log on a larger disk is exported up to its end only" {
	truncate -s 4G lost/log
	ackproof -q capture export lost lost.tar
	[ "$(stat -c %s lost.tar)" -lt 100000 ]
	ackproof -q capture import lost.tar there
	cmp -n "$(stat -c %s there/log)" lost/log there/log
	[ "$(ackproof audit --json there | jq .log_bytes)" = "$(stat -c %s there/log)" ]
}

@test "the kernel goes along, and is put where a built one would be" {
	local here=build/kernel/out/$KERNEL

	exported
	mv build/kernel kernel-before
	run -0 ackproof capture import lost.tar there
	[ "$output" = "imported there" ]
	cmp $here/linux kernel-before/out/$KERNEL/linux
	[ -x $here/linux ]
	cmp $here/variant.json kernel-before/out/$KERNEL/variant.json
	[ "$(cat $here/patches/0001-a_patch.patch)" = 'a patch' ]
	[ ! -e there/kernel ]
	# a second one finds it there
	stat -c %i $here > before
	run -0 ackproof capture import lost.tar there2
	[ "$output" = "imported there2" ]
	[ "$(stat -c %i $here)" = "$(cat before)" ]
}

@test "another build of the kernel stays, and that is said" {
	exported
	echo 'another' > build/kernel/out/$KERNEL/linux
	run -0 ackproof capture import lost.tar there
	[[ $output == "$PWD/build/kernel/out/$KERNEL is another build of the capture's kernel: it stays"$'\n'* ]]
	[ "$(cat build/kernel/out/$KERNEL/linux)" = another ]
	# and it is not the one to export with
	run -0 ackproof capture export lost without.tar
	[[ $output == "without its kernel, "* ]]
	[[ $(tar -tf without.tar) != *kernel* ]]
	run -0 ackproof capture import without.tar there2
	[[ $output == "without.tar has no kernel"$'\n'* ]]
}

@test "a capture that is not whole is not exported" {
	local kind

	for kind in no-end cut-data; do
		"$built/tests/shell/mkcapture" $kind $kind
		fails_with 1 "lwaudit: $kind/log: *" capture export $kind x.tar
	done
	sed -i 's/"complete"/"recording"/' no-end/capture.json
	fails_with 2 "lwaudit: no-end/capture.json: the capture is 'recording', expected 'complete'" \
		capture export no-end x.tar
	rm lost/log
	fails_with 2 "lwaudit: lost/log: cannot open the log: *" \
		capture export lost x.tar
	[ ! -e x.tar ]
}

@test "a capture that has changed since it was recorded is not exported" {
	jq '.log_xxh128 = "0123456789abcdef0123456789abcdef"' lost/capture.json > json
	mv json lost/capture.json
	fails_with 1 "ackproof: lost/log: hash *, expected 0123456789abcdef0123456789abcdef: it has changed since it was recorded" \
		capture export lost x.tar
	[ ! -e x.tar ]
}

@test "export replaces nothing unless it is told to" {
	echo mine > x.tar
	usage_error "x.tar exists already: --force replaces it" \
		capture export lost x.tar
	[ "$(cat x.tar)" = mine ]
	ackproof -q capture export --force lost x.tar
	ackproof -q capture import x.tar there
}

@test "import replaces nothing" {
	exported
	mkdir there
	usage_error "there exists already" capture import lost.tar there
	usage_error "there exists already" capture import lost.tar there/
	ln -s nowhere link
	usage_error "link exists already" capture import lost.tar link
	[ -z "$(ls there)" ]
}

@test "usage" {
	local see="; see 'ackproof capture --help'"

	usage_error "expected a capture and a file$see" capture export lost
	usage_error "expected a capture and a file$see" capture export lost a b
	usage_error "unknown option '--none'$see" capture export --none lost a
	usage_error "none: no such capture" capture export none a
	usage_error "'none/a' is no file in a folder that exists" \
		capture export lost none/a
	usage_error "'lost' is no file in a folder that exists" \
		capture export --force lost lost
	usage_error "expected a file and a folder$see" capture import a
	usage_error "unknown option '--force'$see" capture import --force a b
	usage_error "'none' is not a file that can be read" capture import none a
	usage_error "'lost' is not a file that can be read" capture import lost a
	# a folder of that name is a folder all the same
	mkdir export
	usage_error "./export exists already" capture ./export
}

@test "a flipped byte in any member is told, with its place" {
	local name at count=0

	exported
	while read -r name; do
		at=$(member_at "$name")
		cp lost.tar x.tar
		flip x.tar $((at + 512 + 5))
		case $name in
		MANIFEST) refused x.tar "*, expected *" ;;
		*) refused x.tar "member $name at byte $at: hash *, expected *" ;;
		esac
		# its header
		cp lost.tar x.tar
		flip x.tar $((at + 100))
		refused x.tar "byte $at: *"
		count=$((count + 1))
	done < <(tar -tf lost.tar)
	[ $count = 7 ]
}

@test "a flipped byte outside of all members is told, too" {
	local size at

	exported
	size=$(stat -c %s lost.tar)
	# behind the end of capture.json, and in the end of the tar
	for at in $(($(member_at kernel/config) - 1)) \
		$((size - 1)) $((size - 700)); do
		cp lost.tar x.tar
		flip x.tar $at
		refused x.tar "its members are whole, and the rest is not: byte $((at + 1)) is another"
	done
}

@test "an archive that was cut, anywhere" {
	local size at

	exported
	size=$(stat -c %s lost.tar)
	for at in 0 1 100 511 512 700 1024 2000 $((size / 3)) $((size / 2)) \
		$((size - 5000)) $((size - 513)) $((size - 512)) $((size - 1)); do
		head -c $at lost.tar > x.tar
		run -1 --separate-stderr ackproof capture import x.tar there
		echo "$at: $stderr"
		[[ $stderr =~ ^'ackproof: x.tar: '(byte|member|"no member"|"its members are whole, and the rest is not: cut at byte $at") ]]
		[[ $stderr != *$'\n'* ]]
		[ ! -e there ]
		[ -z "$(ls jobs)" ]
	done
	{ cat lost.tar; echo more; } > x.tar
	refused x.tar "its members are whole, and the rest is not: there is more behind its end"
}

@test "what is no archive of ours" {
	head -c 10000 /dev/urandom > x.tar
	refused x.tar "byte 0: expected a member or the end: *"
	head -c 10240 /dev/zero > x.tar
	refused x.tar "its first member is '', expected MANIFEST: *"
	pack -C lost -cf x.tar capture.json log
	refused x.tar "its first member is 'capture.json', expected MANIFEST: not an archive of 'ackproof capture export'"
	exported
	gzip -k lost.tar
	refused lost.tar.gz "byte 0: *"
}

# The members of lost.tar in x/ and their names, to be packed as something else
unpacked()
{
	exported
	mkdir x
	tar -xf lost.tar -C x
	mapfile -t names < <(tar -tf lost.tar)
}

@test "members that are no plain files, or lead out of the folder" {
	unpacked
	echo evil > evil
	ln -s /etc/passwd x/link
	mkfifo x/fifo
	pack -C x -cf x.tar MANIFEST link
	refused x.tar "member 'link -> /etc/passwd' at byte 1024: expected plain files of a capture only"
	pack -C x -cf x.tar MANIFEST fifo
	refused x.tar "member 'fifo' at byte 1024: expected plain files *"
	pack -C x -cf x.tar MANIFEST kernel
	refused x.tar "member 'kernel/' at byte 1024: expected plain files *"
	ln x/MANIFEST x/hard
	pack -C x -cf x.tar MANIFEST hard
	refused x.tar "member 'hard link to MANIFEST' at byte 1024: expected plain files *"
	for name in ../evil /tmp/evil kernel/../../evil kernel/patches/../x a/b \
		.hidden kernel/.. 'a\b' $'a\nb' --evil; do
		pack -P -C x -cf x.tar --transform="s,capture.json,${name//\\/\\\\},S" MANIFEST capture.json
		refused x.tar "member '*' at byte 1024: expected plain files *"
	done
	[ "$(cat evil)" = evil ]
}

@test "a device among the members" {
	unpacked
	mknod x/null c 1 3 || skip "only root makes devices"
	pack -C x -cf x.tar MANIFEST null
	refused x.tar "member 'null' at byte 1024: expected plain files *"
}

@test "a manifest and members that do not go together" {
	unpacked
	pack -C x -cf x.tar MANIFEST log.zst
	refused x.tar "MANIFEST: line 3 is '* capture.json', expected log.zst, as tar lists them"
	pack --hard-dereference -C x -cf x.tar MANIFEST capture.json capture.json
	refused x.tar "MANIFEST: line 4 is '* kernel/config', expected capture.json, as tar lists them"
	pack --hard-dereference -C x -cf x.tar "${names[@]}" MANIFEST
	refused x.tar "member MANIFEST at byte *: not in MANIFEST"
	cp x/MANIFEST manifest
	sed 's/^ackproof capture 1/ackproof capture 2/' manifest > x/MANIFEST
	pack -C x -cf x.tar "${names[@]}"
	refused x.tar "MANIFEST: line 1 is 'ackproof capture 2', expected 'ackproof capture 1'"
	sed -E 's/^([0-9a-f]+) [0-9]+ capture.json/\1 7 capture.json/' manifest > x/MANIFEST
	pack -C x -cf x.tar "${names[@]}"
	refused x.tar "member capture.json at byte *: * bytes, expected 7"
	sed '/ log$/d' manifest > x/MANIFEST
	pack -C x -cf x.tar "${names[@]}"
	refused x.tar "MANIFEST: no log in it"
	sed 's/ capture.json$/ console/' manifest > x/MANIFEST
	mv x/capture.json x/console
	pack -C x -cf x.tar "${names[@]/capture.json/console}"
	refused x.tar "no member capture.json"
}

# x/ packed anew with a manifest that is true of it
repacked()
{
	local log line

	log=$(grep ' log$' x/MANIFEST)
	{
		echo 'ackproof capture 1'
		echo "$log"
		printf '%s\n' "${names[@]:1}" | while read -r line; do
			echo "$(xxhsum -H2 < "x/$line" | cut -d ' ' -f 1) $(stat -c %s "x/$line") $line"
		done
	} > x/MANIFEST
	pack -C x -cf x.tar "${names[@]}"
}

@test "another log, or another kernel, with a manifest that is true of it" {
	unpacked
	repacked
	ackproof -q capture import x.tar there
	rm -r there x.tar

	cp x/log.zst log.zst
	"$built/tests/shell/mkcapture" other
	rm x/log.zst
	"$built/bin/lwlog" convert other/log x/log.zst
	repacked
	refused x.tar "member log.zst: unpacks to * bytes, expected *"
	cp lost/log other.log
	flip other.log $(($(stat -c %s other.log) - 3000))
	rm x/log.zst
	"$built/bin/lwlog" convert other.log x/log.zst
	repacked
	refused x.tar "member log.zst: unpacks to a log with hash *, expected *"
	head -c 1000 /dev/urandom > x/log.zst
	repacked
	refused x.tar "member log.zst: *"
	mv log.zst x/log.zst

	echo junk > x/trace.zst
	names+=(trace.zst)
	repacked
	refused x.tar "member trace.zst: *"
	unset 'names[-1]'

	echo other | zstd -qf -o x/kernel/linux.zst
	repacked
	refused x.tar "member kernel/linux.zst: not the kernel that capture.json names"
	[ ! -e build/kernel/out/other ]
	# a name that leads elsewhere
	zstd -qf -o x/kernel/linux.zst build/kernel/out/$KERNEL/linux
	sed -i "s,$KERNEL,../../../../evil," x/kernel/variant.json x/capture.json
	repacked
	refused x.tar "member kernel/linux.zst: not the kernel that capture.json names"
	[ ! -e evil ]
}

# Run the command, with a program in the place of $1 that stops it there for good
killed_at()
{
	local program=$1 pid status

	shift
	mkdir -p stop
	mkfifo stop/reached
	cat > "stop/$program" <<- 'END'
		#!/bin/bash
		echo > "${0%/*}/reached"
		kill -STOP $$
	END
	chmod 755 "stop/$program"
	PATH=$PWD/stop:$PATH setsid "$top/harness/ackproof" "$@" 3>&- &
	pid=$!
	read -r < stop/reached
	kill -KILL -- -$pid
	wait $pid || status=$?
	[ "$status" = 137 ]
	rm -r stop
}

@test "an export that is killed anywhere leaves no archive, and can be run again" {
	local at

	make_kernel <<< '#!/bin/true'
	for at in zstd xxhsum tar mv; do
		killed_at $at capture export lost lost.tar
		[ ! -e lost.tar ]
	done
	ackproof -q capture export lost lost.tar
	ackproof -q capture import lost.tar there
	# one that replaces leaves the old one
	cp lost.tar old.tar
	killed_at mv capture export --force lost lost.tar
	cmp lost.tar old.tar
	ackproof -q capture export --force lost lost.tar
}

@test "an import that is killed anywhere leaves no capture, and can be run again" {
	local at

	exported
	mv build/kernel kernel-before
	for at in tar xxhsum cmp zstd mv; do
		killed_at $at capture import lost.tar there
		[ ! -e there ]
		[ ! -e build/kernel/out/$KERNEL ]
	done
	ackproof -q capture import lost.tar there
	diff -r lost there
	cmp build/kernel/out/$KERNEL/linux kernel-before/out/$KERNEL/linux
}
