#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards harness/lib/kernel.sh: a kernel is what its source, patches and config
# say, whatever was built in the same tree before, or was killed while it was.
# The source is a small one: see kernel/Makefile.

load lib
load source

setup_file()
{
	cd "$BATS_FILE_TMPDIR" || return
	mkdir new
	cd new || return
	make_source
	make_patches
	tar -cf linux.tar --transform 's,^source,linux-9.9,' source
}

setup()
{
	own_folder
	export ACKPROOF_PATCHES=$PWD/patches ACKPROOF_TARBALL=$PWD/linux.tar
	cp -r "$BATS_FILE_TMPDIR/new/." .
}

teardown()
{
	local pid

	# what a test that failed has left
	for pid in $(of_build); do
		kill -KILL "$pid" 2> /dev/null || :
	done
}

# The processes whose folder is below the test's build
of_build()
{
	find /proc -maxdepth 2 -path "/proc/[0-9]*/cwd" \
		-lname "$BATS_TEST_TMPDIR/build/*" 2> /dev/null | cut -d / -f 3
}

# Build variant $1 with the options that follow: its folder in dir
build()
{
	dir=$(ackproof -q kernel path "$@")
	[ -s "$dir/linux" ]
}

# What was compiled since the last call
compiled()
{
	cat build/kernel/*/obj-*/compiled 2> /dev/null | sort | xargs
	rm -f build/kernel/*/obj-*/compiled
}

# The kernel has line $1 in it, or has not
has()
{
	grep -qx "$1" "$dir/linux"
}

lacks()
{
	! has "$1"
}

# Nothing matches pattern $1
absent()
{
	! compgen -G "$1"
}

# The kernel must be what a build of the same from nothing is.
same_as_fresh()
{
	local want

	mkdir -p fresh
	ln -sfn "$built/bin" fresh/bin
	want=$(ACKPROOF_BUILD=$PWD/fresh ackproof -q kernel path "$@")
	cmp "$dir/linux" "$want/linux"
	cmp "$dir/config" "$want/config"
	[ "${dir##*/}" = "${want##*/}" ]
}

cannot()
{
	fails_to_build 77 "$@"
}

# For the reason that the source is what it is
untestable()
{
	fails_to_build 125 "$@"
}

fails_to_build()
{
	local status=$1

	shift
	run --separate-stderr -"$status" ackproof -q kernel build "$@"
	echo "$stderr"
	[ -z "$output" ]
}

@test "list: the variants, how many patches, and what they are for" {
	run -0 ackproof kernel list
	[ "$(tr -s ' ' <<< "${lines[0]}")" = "VARIANT PATCHES ABOUT" ]
	[ "$(tr -s ' ' <<< "${lines[1]}")" = "early 4 the variant early" ]
	[ "$(tr -s ' ' <<< "${lines[3]}")" = "stock 0 the variant stock" ]
	[ ${#lines[@]} = 5 ]
}

@test "a variant file that cannot be understood" {
	local file=$PWD/patches/variants/bad

	echo 'patches x' > "$file"
	usage_error "$file: unknown word 'patches'" kernel build bad
	variant bad 'patch none.patch'
	cannot bad
	[ "$stderr" = "ackproof: variant bad: cannot read $PWD/patches/none.patch" ]
}

@test "a build leaves the kernel, its config, its patches and what it is" {
	build series
	has fixed
	has counted
	has skips
	[ "$(sort "$dir/config" | xargs)" = "# CONFIG_LATER is not set # CONFIG_NET is not set CONFIG_OURS=y CONFIG_XFS=y" ]
	cmp patches/6.12/3-skip.patch "$dir/patches/3-skip.patch"
	[ "$(jq -r '[.variant, .version, .arch, .hash, .patches[].name] | join(" ")' \
		"$dir/variant.json")" = \
	  "series 9.9.1 um ${dir##*/} 1-fix.patch 2-count.patch 3-skip.patch" ]
	[ "$(jq -r '.patches[0].sha256' "$dir/variant.json")" = \
	  "$(sha256sum < patches/6.12/1-fix.patch | cut -d ' ' -f 1)" ]
	[ "$(jq -r .config_sha256 "$dir/variant.json")" = \
	  "$(sha256sum < "$dir/config" | cut -d ' ' -f 1)" ]
	[ -z "$(find build/kernel/out -name '*.new')" ]
}

@test "what was built is not built again" {
	build stock
	compiled
	run --separate-stderr -0 ackproof kernel build stock
	[ -z "$stderr" ]
	[ -z "$(compiled)" ]
	# not even where nothing could be built
	PATH=$PWD/none:/usr/bin:/bin run -0 ackproof kernel path stock
	[ "$output" = "$dir" ]
}

@test "the next variant rewrites and compiles only what differs; back restores" {
	build stock
	[ "$(compiled)" = "drivers/md/dm-log-writes.c fs/file.c fs/gone.c fs/log.c" ]
	touch -d 2020-01-01 build/kernel/*/tree/fs/*
	touch build/kernel/*/obj-*/fs/*.o
	cp -r build/kernel/*/tree before
	build early
	[ "$(compiled)" = "drivers/md/dm-log-writes.c fs/file.c fs/log.c" ]
	[ "$(stat -c %y build/kernel/*/tree/fs/gone.c | cut -c 1-4)" = 2020 ]
	has early
	build series
	[ "$(compiled)" = fs/log.c ]
	lacks early
	has skips
	rm -r build/kernel/out
	build stock
	diff -r before build/kernel/*/tree
	lacks skips
}

@test "files that a patch adds, deletes and renames" {
	cat > add.patch <<- END
		diff --git a/fs/gone.c b/fs/gone.c
		deleted file mode 100644
		--- a/fs/gone.c
		+++ /dev/null
		@@ -1 +0,0 @@
		-gone
		diff --git a/fs/new.c b/fs/new.c
		new file mode 100644
		--- /dev/null
		+++ b/fs/new.c
		@@ -0,0 +1 @@
		+new
		diff --git a/fs/script.sh b/fs/moved.sh
		similarity index 100%
		rename from fs/script.sh
		rename to fs/moved.sh
	END
	build stock --patch add.patch
	has new
	lacks gone
	[ "$(cat build/kernel/*/tree/fs/moved.sh)" = script ]
	absent 'build/kernel/*/tree/fs/script.sh'
	build stock
	has gone
	lacks new
	absent 'build/kernel/*/tree/fs/new.c'
	absent 'build/kernel/*/tree/fs/moved.sh'
	build series --patch add.patch
	has new
	lacks gone
	same_as_fresh series --patch add.patch
}

@test "a series of many files that deletes the first" {
	local i name

	name=z$(printf '%0200d/' 1 2 3 4 5 6 7 8 9 10 11 12)
	# their names are more than what a pipe holds
	for ((i = 0; i < 40; i++)); do
		printf -- '--- /dev/null\n+++ b/fs/%s%s.h\n@@ -0,0 +1 @@\n+x\n' \
			"$name" $i
	done > many.patch
	echo header > source/fs/aaa.h
	printf -- '--- a/fs/aaa.h\n+++ /dev/null\n@@ -1 +0,0 @@\n-header\n' >> many.patch
	build stock --source source --patch many.patch
	absent 'build/kernel/dir-*/tree/fs/aaa.h'
}

@test "modes of files survive a patch" {
	edit script.patch fs/script.sh 's/script/patched/'
	build stock --patch script.patch
	[ "$(cat build/kernel/*/tree/fs/script.sh)" = patched ]
	[ "$(stat -c %a build/kernel/*/tree/fs/script.sh)" = 755 ]
	edit file.patch fs/file.c 's/^3$/three/'
	build stock --patch file.patch
	[ "$(cat build/kernel/*/tree/fs/script.sh)" = script ]
	[ "$(stat -c %a build/kernel/*/tree/fs/script.sh)" = 755 ]
	[ "$(stat -c %a build/kernel/*/tree/fs/file.c)" = \
	  "$(stat -c %a source/fs/file.c)" ]
}

@test "a patch that does not apply: which one, which file, which hunk" {
	edit bad.patch fs/file.c 's/^9$/nine/'
	sed -i 's/^ 10$/ ten/; s/^ 8$/ eight/' bad.patch
	edit bad.patch fs/log.c 's/^9$/nine/'
	untestable series --patch bad.patch
	[ "$stderr" = "ackproof: $PWD/bad.patch does not apply:
  fs/file.c: Hunk #1 FAILED at 6." ]
	build series
	lacks nine
}

@test "a patch for a file that is not there, or that is none" {
	printf -- '--- a/fs/none.c\n+++ b/fs/none.c\n@@ -1 +1 @@\n-a\n+b\n' > none.patch
	untestable stock --patch none.patch
	[[ $stderr == *"none.patch does not apply:"*"can't find file to patch"*fs/none.c* ]]
	echo nonsense > nonsense.patch
	untestable stock --patch nonsense.patch
	[[ $stderr == *"nonsense.patch does not apply:"*garbage* ]]
	printf -- '--- /dev/null\n+++ b/../../out.c\n@@ -0,0 +1 @@\n+x\n' > out.patch
	run -2 ackproof -q kernel build stock --patch out.patch
	[[ $output == *"a patch reaches outside the tree: ../../out.c" ]]
}

@test "a config symbol that does not stick" {
	echo CONFIG_TYPO=y >> patches/config/um.config
	untestable stock
	[ "$stderr" = "ackproof: CONFIG_TYPO did not stick: wanted 'CONFIG_TYPO=y', got 'nothing'" ]
	echo 'config FORCED' >> patches/config/um.Kconfig
	sed -i s/CONFIG_TYPO=y/CONFIG_FORCED=n/ patches/config/um.config
	untestable stock
	[ "$stderr" = "ackproof: CONFIG_FORCED did not stick: wanted off, got 'CONFIG_FORCED=y'" ]
	# still so when it is tried again
	untestable stock
	[[ $stderr == *FORCED* ]]
}

@test "a patch that adds a config symbol" {
	build stock
	edit symbol.patch fs/Kconfig '$aconfig NEW'
	build stock --patch symbol.patch < <(echo y)
	grep -q 'CONFIG_NEW is not set' "$dir/config"
	# the config is of these patches, whatever was there before
	edit file.patch fs/file.c 's/^3$/three/'
	build stock --patch file.patch
	run -1 grep NEW "$dir/config"
}

@test "a compile error: the compiler's first" {
	edit error.patch fs/file.c 's/^3$/#error first/; s/^4$/#error second/'
	untestable stock --patch error.patch
	[[ $stderr == "ackproof: variant stock does not build: fs/file.c:3:1: error: first; see $PWD/build/kernel/"*/build.log ]]
	[ -z "$(find build/kernel/out -name linux)" ]
	run -0 flock -n "$(echo build/kernel/linux-*/lock)" true
	build stock
	has 3
}

@test "what an outer make was told does not reach the kernel's" {
	# would only say what it would do
	MAKEFLAGS="-n -- sources=" build stock
	has gone
}

@test "--source is only read, and what was built there is not" {
	local before

	touch source/vmlinux source/.config source/fs/file.o
	mkdir -p source/include/config
	touch source/include/config/auto.conf
	edit error.patch fs/file.c 's/^3$/#error x/'
	before=$(state source)
	build series --source source
	has skips
	untestable stock --source source --patch error.patch
	[ "$before" = "$(state source)" ]
	absent 'build/kernel/dir-*/tree/.git'
	[ "$(jq -r .source "$dir/variant.json")" = "$PWD/source" ]
	[ -z "$(cd build/kernel/dir-*/tree && find . -name .config -o -name '*.o' -o -name vmlinux -o -name auto.conf)" ]
}

@test "an edit in --source leads to another build" {
	local first

	build series --source source
	first=$dir
	compiled
	build series --source source
	[ "$dir" = "$first" ]
	[ -z "$(compiled)" ]
	sed -i 's/gone/edited/' source/fs/gone.c
	mv source/fs/gone.c source/fs/other.c
	build series --source source
	[ "$dir" != "$first" ]
	has edited
	has skips
	[ "$(cd build/kernel/dir-*/tree && echo fs/*.c)" = "fs/file.c fs/log.c fs/other.c" ]
	# git's own changes are none
	first=$dir
	echo other > source/.git/object
	build series --source source
	[ "$dir" = "$first" ]
}

@test "--series: a quilt folder in the place of our series, below the mutants" {
	mkdir theirs
	edit theirs/z.patch fs/file.c 's/^2$/theirs/'
	sed -i 's,^--- a/,--- linux.orig/,; s,^+++ b/,+++ linux/,' theirs/z.patch
	edit theirs/a.patch fs/log.c 's/^5$/theirs too/'
	edit theirs/unused.patch fs/log.c 's/^1$/unused/'
	printf '%s\n' '# comment' '' 'z.patch -p1' > theirs/series
	printf a.patch >> theirs/series
	build early --series theirs
	has theirs
	has 'theirs too'
	has early
	lacks unused
	lacks skips
	lacks counted
	# our fix is not under test
	has fixed
	[ "$(jq -r '[.patches[].name] | join(" ")' "$dir/variant.json")" = \
	  "1-fix.patch z.patch a.patch early.patch" ]
}

@test "--series: a format-patch folder, its cover letter, and its own fix" {
	mkdir theirs
	edit theirs/0002-skip.patch fs/log.c 's/^5$/theirs/'
	edit theirs/0001-fix.patch drivers/md/dm-log-writes.c 's/^8$/their fix/'
	printf 'Subject: [PATCH 0/2]\n\n fs/log.c | 2 +-\n' > theirs/0000-cover-letter.patch
	echo notes > theirs/notes.txt
	build series --series theirs
	has theirs
	has 'their fix'
	lacks fixed
	[ "$(jq -r '[.patches[].name] | join(" ")' "$dir/variant.json")" = \
	  "0001-fix.patch 0002-skip.patch" ]
}

@test "--series leaves a control as it is" {
	mkdir theirs
	edit theirs/1.patch drivers/md/dm-log-writes.c 's/^8$/their fix/'
	edit theirs/2.patch fs/log.c 's/^5$/theirs/'
	build stock-dmfix --series theirs
	has fixed
	lacks theirs
	lacks 'their fix'
}

@test "--series: one that is empty, or that cannot be read whole" {
	mkdir theirs
	usage_error "--series: no patches in $PWD/theirs" \
		kernel build series --series theirs
	edit theirs/1.patch fs/log.c 's/^5$/theirs/'
	printf '%s\n' 1.patch 2.patch > theirs/series
	usage_error "$PWD/theirs/series: cannot read 2.patch" \
		kernel build series --series theirs
	printf '%s\n' '1.patch -p0' > theirs/series
	usage_error "$PWD/theirs/series: '1.patch -p0', expected patches for -p1" \
		kernel build series --series theirs
	[ ! -e build/kernel ]
}

@test "--patch goes on top, in order, also two of one name" {
	edit one/y.patch fs/file.c 's/^6$/first/'
	edit two/y.patch fs/file.c 's/^6$/second/'
	sed -i 's/^-6/-first/' two/y.patch
	build series --patch one/y.patch --patch two/y.patch
	has second
	has counted
	[ "$(cat "$dir"/patches/*y.patch | sort)" = "$(sort one/y.patch two/y.patch)" ]
	untestable series --patch two/y.patch --patch one/y.patch
	[[ $stderr == *two/y.patch\ does\ not\ apply:* ]]
}

@test "no tarball: how to get it; another tarball: another source" {
	build stock
	mv linux.tar other.tar
	cannot series
	[ "$stderr" = "ackproof: $PWD/linux.tar is missing: run 'make setup', or apt-get install linux-source-6.12" ]
	echo other > source/fs/gone.c
	tar -cf linux.tar --transform 's,^source,linux-9.9,' source
	build stock
	has other
	[ "$(jq -r .source "$dir/variant.json")" = "$PWD/linux.tar" ]
	head -c 5000 other.tar > linux.tar
	cannot stock
	[[ $stderr == *"cannot unpack $PWD/linux.tar" ]]
}

wait_for()
{
	local i

	for ((i = 0; i < 250; i++)); do
		[ -z "$(compgen -G "$1")" ] || return 0
		sleep 0.02
	done
	echo "no $1"
	return 1
}

# None of the build runs any more, within 5 seconds
none_left()
{
	local i

	for ((i = 0; i < 250; i++)); do
		of_build > left
		[ -s left ] || return 0
		sleep 0.02
	done
	xargs ps -fp < left
	return 1
}

@test "kill -9 in the middle leaves no process, and nothing wrong" {
	unset ACKPROOF_SUPERVISED
	edit sleep.patch fs/log.c 's/^17$/#sleep/'
	"$top/harness/ackproof" kernel build stock --patch sleep.patch &
	wait_for 'build/kernel/*/slept'
	[ "$(wc -l < build/kernel/*/obj-*/fs/log.o)" = 3 ]
	kill -KILL $!
	none_left
	build stock --patch sleep.patch
	has '#sleep'
	[ "$(wc -l < "$dir/linux")" = 61 ]
}

@test "a tree that was killed while it was patched or copied is mended" {
	local tree

	build stock
	# as if it had been: one file cut, one not restored, one left
	tree=$(echo build/kernel/linux-*)
	: > "$tree/tree/fs/file.c"
	echo fs/file.c >> "$tree/touched"
	mkdir -p "$tree/orig/fs"
	cp source/fs/file.c "$tree/orig/fs/"
	rm -r build/kernel/out
	build series
	has counted
	has 10
	build stock --source source
	rm build/kernel/dir-*/tree/fs/log.c
	echo x >> build/kernel/dir-*/tree/fs/file.c
	build series --source source
	diff source/fs/gone.c build/kernel/dir-*/tree/fs/gone.c
	has skips
	lacks x
}

@test "two builds at once do not mix, and one does not redo the other's" {
	ackproof kernel path series > one 2> one.err &
	ackproof kernel path early > two 2> two.err &
	ackproof kernel path series > three 2> three.err &
	wait
	cmp one three
	dir=$(cat one)
	lacks early
	same_as_fresh series
	dir=$(cat two)
	has early
	same_as_fresh early
	# of two for the same, one waits for the other, and finds it done
	[ "$(cat one.err three.err | grep -c "^built kernel")" = 1 ]
}

@test "clean --kernels leaves a tree that is in use" {
	build stock
	exec {fd}> "$(echo build/kernel/linux-*/lock)"
	flock "$fd"
	run -0 ackproof clean --kernels
	[[ $output == *"/linux-source-"*" is in use" ]]
	[ -s "$dir/linux" ]
	exec {fd}>&-
	run -0 ackproof clean --kernels
	[ ! -e build/kernel ]
}

@test "--commit: what it holds, whatever is checked out, and nothing of git changes" {
	local before

	git_tree
	sed -i 's/gone/two/' source/fs/gone.c
	echo new > source/fs/new.c
	git -C source rm -q fs/script.sh
	commit two
	git -C source checkout -q one
	echo mine >> source/fs/log.c
	git -C source add fs/log.c
	echo more >> source/fs/log.c
	before=$(state source)
	# also from within a hook or a bisection
	GIT_DIR=$PWD/none GIT_INDEX_FILE=$PWD/source/.git/index \
		build stock --source source --commit two
	has two
	has new
	lacks mine
	absent 'build/kernel/git-*/tree/fs/script.sh'
	[ "$(jq -r '.commit.id, .commit.describe' "$dir/variant.json")" = \
	  "$(git -C source rev-parse two)"$'\ntwo' ]
	build stock --source source --commit one
	lacks new
	has gone
	lacks mine
	[ "$(state source)" = "$before" ]
	# a bare one is as good, and has the same trees
	git clone -q --bare source bare.git
	ackproof kernel path --source bare.git --commit one stock | cmp - <(echo "$dir")
}

@test "--commit: the next one rewrites and compiles only what differs" {
	local tree

	git_tree
	sed -i 's/^9$/nine/' source/fs/log.c
	sed -i 's/^3$/three/' source/drivers/md/dm-log-writes.c
	commit two
	build series --source source --commit one
	compiled
	tree=$(echo build/kernel/git-*)
	touch -d 2020-01-01 "$tree"/tree/fs/*
	build series --source source --commit two
	[ "$(compiled)" = "drivers/md/dm-log-writes.c fs/log.c" ]
	[ "$(stat -c %y "$tree/tree/fs/file.c" | cut -c 1-4)" = 2020 ]
	has nine
	has three
	has fixed
	has skips
	same_as_fresh series --source source --commit two
}

@test "--commit: files that come in the place of folders, and back" {
	git_tree
	rm source/fs/gone.c source/fs/script.sh
	mkdir source/fs/script.sh
	echo inner > source/fs/script.sh/inner.h
	commit two
	build stock --source source --commit one
	build stock --source source --commit two
	[ "$(cat build/kernel/git-*/tree/fs/script.sh/inner.h)" = inner ]
	rm -r build/kernel/out
	build stock --source source --commit one
	[ "$(cat build/kernel/git-*/tree/fs/script.sh)" = script ]
	[ "$(stat -c %a build/kernel/git-*/tree/fs/script.sh)" = 755 ]
}

@test "--commit: a tree that was killed between two commits is mended" {
	local tree

	git_tree
	sed -i 's/^9$/nine/' source/fs/log.c
	echo two > source/fs/two.c
	commit two
	echo three > source/fs/three.c
	commit three
	build series --source source --commit one
	tree=$(echo build/kernel/git-*)
	# on the way to the second it is killed, with a file written and one not
	mkdir bin
	cat > bin/git <<- 'END'
		#!/bin/sh
		case "$*" in *checkout-index*/tree/\ *) kill -KILL $PPID; exit ;; esac
		exec /usr/bin/git "$@"
	END
	chmod 755 bin/git
	PATH=$PWD/bin:$PATH cannot series --source source --commit two
	cmp -s "$tree/orig/fs/log.c" source/fs/log.c
	rm -r build/kernel/out
	build series --source source --commit one
	same_as_fresh series --source source --commit one
	# and one whose tree git has dropped begins anew
	echo 0123456789012345678901234567890123456789 > "$tree/trees"
	echo stray > "$tree/tree/fs/stray.c"
	build series --source source --commit three
	lacks stray
	same_as_fresh series --source source --commit three
}

@test "--commit: one that there is not, and trees without git or without a kernel" {
	usage_error "--source: '$PWD/source' is not a git tree: *" \
		kernel build stock --source source --commit HEAD
	git_tree
	usage_error "--commit: there is no commit 'none' in $PWD/source" \
		kernel build stock --source source --commit none
	usage_error "--commit: there is no commit '--all' in $PWD/source" \
		kernel build stock --source source --commit --all
	usage_error "--commit: needs --source, the git tree that it is in" \
		kernel build stock --commit HEAD
	git -C source rm -q Kconfig
	commit two
	usage_error "--commit: 'two' is not of a kernel tree: it has no Kconfig" \
		kernel build stock --source source --commit two
	usage_error "--source: '$PWD/source' has no kernel checked out; see --commit" \
		kernel build stock --source source
}

@test "a patch of ours that the source has already is left out" {
	patch -s -d source -p1 < patches/6.12/1-fix.patch
	build series --source source
	has fixed
	has skips
	[ "$(jq -r '[.patches[].name] | join(" ")' "$dir/variant.json")" = \
	  "2-count.patch 3-skip.patch" ]
	# not so one of the user's
	untestable stock --source source --patch patches/mutants/early.patch \
		--patch patches/mutants/early.patch
}

@test "what the machine is to blame for is not the source's fault" {
	local line

	edit error.patch fs/file.c 's/^3$/#error first/'
	# a compiler that was killed, a program that is not there, a full disk
	for line in 'gcc: fatal error: Killed signal terminated program cc1' \
		'/bin/sh: 1: bison: not found' 'make[2]: bison: No such file or directory' \
		'make: *** [Makefile:7: x] Killed' 'ccache: error: execute_noreturn' \
		'as: out.o: No space left on device'; do
		sed "s,#error first,#say $line," error.patch > said.patch
		cannot stock --patch said.patch
	done
	for line in 'fs/x.c:1: error: not found' '/bin/sh: 1: ./scripts/x: not found' \
		"make: *** No rule to make target 'x.o'.  Stop."; do
		sed "s,#error first,#say $line," error.patch > said.patch
		untestable stock --patch said.patch
	done
	untestable stock --patch error.patch
	# no compiler at all
	mkdir bin
	ln -s /usr/bin/* bin/
	rm bin/gcc
	PATH=$PWD/bin cannot stock
	[ "$stderr" = "ackproof: gcc is not installed: run 'make setup', or apt-get install gcc" ]
}
