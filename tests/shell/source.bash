# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# A kernel source that builds at once, and patches of ours for it: see
# kernel/Makefile.

make_source()
{
	mkdir -p source/fs source/drivers/md source/.git
	seq 10 > source/fs/file.c
	seq 20 > source/fs/log.c
	echo gone > source/fs/gone.c
	echo script > source/fs/script.sh
	chmod 755 source/fs/script.sh
	seq 30 > source/drivers/md/dm-log-writes.c
	echo object > source/.git/object
	printf 'config %s\n' NET XFS > source/Kconfig
	echo 'config LATER' >> source/fs/Kconfig
	cp "$BATS_TEST_DIRNAME/kernel/Makefile" source/
}

# edit NAME FILE SED: patch NAME makes FILE what SED does to the source's
edit()
{
	rm -rf a b
	mkdir -p "a/${2%/*}" "b/${2%/*}" "$(dirname "$1")"
	[ ! -f "source/$2" ] || cp "source/$2" "a/$2"
	sed "$3" "source/$2" > "b/$2"
	# diff says 1: they differ
	diff -u "a/$2" "b/$2" >> "$1" || [ $? = 1 ]
	rm -rf a b
}

make_patches()
{
	local p=patches/6.12

	mkdir -p patches/config patches/variants patches/mutants $p
	printf '%s\n' CONFIG_XFS=y CONFIG_NET=n > patches/config/common.config
	echo CONFIG_OURS=y > patches/config/um.config
	echo 'config OURS' > patches/config/um.Kconfig
	edit $p/1-fix.patch drivers/md/dm-log-writes.c 's/^7$/fixed/'
	edit $p/2-count.patch fs/file.c 's/^2$/counted/'
	edit $p/3-skip.patch fs/log.c 's/^5$/skips/'
	printf '%s\n' 1-fix.patch 2-count.patch 3-skip.patch > $p/series
	edit patches/mutants/early.patch fs/log.c 's/^15$/early/'
	variant stock
	variant stock-dmfix 'patch 6.12/1-fix.patch'
	variant series 'series 6.12'
	variant early 'series 6.12' 'patch mutants/early.patch'
}

variant()
{
	printf '%s\n' "about the variant $1" \
		"${@:2}" > "patches/variants/$1"
}

# The source as a git tree: its first commit is "one"
git_tree()
{
	rm -rf source/.git
	git init -q source
	git -C source config user.name tester
	git -C source config user.email tester@localhost
	git -C source config commit.gpgsign false
	commit one
}

# Commit all of the source under name $1
commit()
{
	git -C source add -A
	git -C source commit -q -m "$1"
	git -C source tag "$1"
}

# All of a folder, contents and times
state()
{
	find "$1" -printf '%p %m %s %T@ %C@\n' | sort
	find "$1" -type f -exec sha256sum {} + | sort
}
