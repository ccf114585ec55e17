#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the reading of campaign files: what a section inherits, what a matrix and
# --set make of it, and that each mistake is refused with its file and line before
# anything is built or written.

load lib

setup()
{
	own_folder
}

teardown()
{
	local left

	left=$(find . -path "./jobs/*" -o -path "./results/*" -o -path "./build/kernel/*")
	[ -z "$left" ] || echo "left: $left"
	[ -z "$left" ]
}

see="; see 'ackproof"

# A section that has all it needs
section()
{
	cat <<- END
		[$1]
		variant = series
		captures = 1
		seed = 1
		points = 8@ack,3
		expect = clean
	END
}

# A campaign of that section and stdin is refused with that message
campaign_refused()
{
	{ section one; cat; } > file
	usage_error "./file: $1" campaign ./file
}

# The lines of section $1 in what show prints; the rest are its arguments
shown()
{
	local section=$1

	shift
	ackproof campaign show "$@" ./file |
		awk -v s="[$section]" '/^\[/ { on = $0 == s; next } on && NF && !/^#/' |
		sed 's/ = /=/' | xargs
}

@test "which one" {
	usage_error "expected a campaign$see campaign --help'" campaign
	usage_error "one campaign only$see*" campaign 528 528
	usage_error "unknown option '--none'$see*" campaign --none 528
	usage_error "--jobs: '0' is not a number from 1 to 1024" \
		campaign --jobs 0 528
	usage_error "--budget: '1d' is not a time like 90s, 20m or 8h" \
		campaign --budget 1d 528
	usage_error "--keep-bytes: 'all' is not a size like 320m" \
		campaign --keep-bytes all 528
	usage_error "no campaign 'none'; there are: 528*smoke" campaign none
	usage_error "no campaign '..'; there are: 528*" campaign ..
	usage_error "'./none' is not a campaign file that can be read" \
		campaign ./none
	section one > 'a b'
	usage_error "./a b: its results cannot go by this name: *" campaign './a b'
	section one > latest
	usage_error "./latest: its results cannot go by this name: *" \
		campaign ./latest
	usage_error "expected a campaign$see*" campaign show
	usage_error "no campaign 'none'; *" campaign check none
	usage_error "list takes no argument$see*" campaign list 528
}

@test "ours have no mistake, and the list has them all" {
	local name

	run -0 ackproof campaign list
	for name in "$top"/harness/campaigns/*; do
		name=${name##*/}
		[[ $output == *$'\n'"$name "* ]]
		run -0 --separate-stderr ackproof campaign check "$name"
		[[ $stderr == "$name: "*" sections, no mistake" ]]
		run -0 ackproof campaign list
	done
}

@test "a file that cannot be understood" {
	: > file
	usage_error "./file: no sections" campaign ./file
	echo 'writers = 8' > file
	usage_error "./file: line 1: 'writers' before the first section, where only *" \
		campaign ./file
	echo 'budget = long' > file
	usage_error "./file: line 1: budget: 'long' is not a time like *" campaign ./file
	echo 'repeat = often' > file
	usage_error "./file: line 1: repeat: 'often', expected yes or no" campaign ./file
	{ echo 'repeat = yes'; section one; } > file
	usage_error "./file: it repeats until its budget is used: expected a budget, *" \
		campaign ./file
	campaign_refused "line 7: unknown key 'writer', did you mean writers?; known are: *" \
		<<< "writer = 8"
	campaign_refused "line 7: unknown key 'expekt', did you mean expect?; *" \
		<<< "expekt = loss"
	campaign_refused "line 7: unknown key 'matrix.logsize', did you mean log_size?; *" \
		<<< "matrix.logsize = 10m"
	campaign_refused "line 7: unknown key 'workload'; known are: *" <<< "workload = 8"
	campaign_refused "line 7: expected 'key = value', got 'writers 8'" \
		<<< "writers 8"
	campaign_refused "line 7: expected 'key = value', got '?two'" <<< "[two"
	campaign_refused "line 7: section name 'two three'" <<< "[two three]"
	campaign_refused "line 9: a second section 'one', after that of line 1" <<- END
		# a comment, and a blank line

		[one]
	END
	campaign_refused "line 7: section 'one' has a 'seed' in line 4 already" \
		<<< "seed = 2"
	campaign_refused "line 7: section 'one' has a 'seed' in line 4 already" \
		<<< "matrix.seed = 2 3"
	# the last line may have no newline
	campaign_refused "line 7: unknown key 'x'*" < <(printf 'x = 1')
}

@test "values" {
	local line

	# shellcheck disable=SC2094 # campaign_refused does not read it
	while IFS='|' read -r line message; do
		campaign_refused "line 8: section two: $message" <<- END
			[two]
			$line
		END
	done <<- END
		expect = maybe|expect: 'maybe', expected clean, loss or any
		expect_replays_lost = 3|expect_replays_lost: 3, of a section that is *
		captures = 0|captures: '0' is not a number from 1 to 10000
		seed = 1e3|seed: '1e3' is not a number from 0 to *
		suspects = all|suspects: 'all' is not a number from 0 to *
		budget = soon|budget: 'soon' is not a time like 90s, 20m or 8h
		expect_skipped = 101|expect_skipped: '101' is not a number from 0 to 100
		points = 8@none|points: '8@none', expected a list of KIND, *
		points = 0@ack|points: '0@ack', expected a list of KIND, *
		variant = none|unknown variant 'none'; there are: *series*
		writers = 0|--writers: '0' is not a number from 1 to 1024
		data_size = 10x|--data-size: '10x' is not a size like 320m
		log_size = 0|--log-size: '0' is not a size like 320m
		delay = 4|--delay: '4', expected W,F$see*
		mode = random|--mode: 'random', expected overwrite, append or mixed$see*
		reflink = yes|reflink: 'yes', expected 0 or 1
		block_size = big|block_size: 'big' is not a size like 320m
		logbsize = 8k|logbsize: '8k', expected 16k, 32k, 64k, 128k or 256k
		noise = none.fio|noise: '*/workloads/none.fio' is not a file of fio jobs *
	END
	campaign_refused "line 7: matrix.log_size: no values" <<< "matrix.log_size ="
	campaign_refused "line 8: matrix.mount: two values are called 'a_b'" <<- END
		[two]
		matrix.mount = a b | a:b
	END
}

@test "a geometry that mkfs.xfs does not take" {
	command -v mkfs.xfs || PATH+=:/sbin:/usr/sbin
	campaign_refused "line 7: section two: mkfs.xfs does not take '*': *sector size*" <<- END
		[two]
		block_size = 1k
		sector_size = 4k
	END
	campaign_refused "line 7: section two/reflink=1: mkfs.xfs does not take *" <<- END
		[two]
		matrix.reflink = 0 1
		mkfs = -m crc=0
	END
}

@test "keys that a section must have" {
	local key

	for key in variant captures seed points expect; do
		section one | grep -v "^$key =" > file
		usage_error "./file: line 1: section one: has no $key, and inherits none" \
			campaign ./file
	done
	# what the first one has not, the second may have
	{ section one | grep -v '^seed'; echo '[two]'; echo 'seed = 3'; } > file
	usage_error "./file: line 1: section one: has no seed, *" campaign ./file
	ackproof -q campaign check --section two ./file
}

@test "a section inherits from the one before, and a later word counts" {
	{ section one; printf '%s\n' 'writers = 4' 'mkfs = -K' '[two]' 'writers = 5' \
		'mkfs =' '[three]' 'mode = append'; } > file
	[[ $(shown one) == *" writers=4 mkfs=-K"* || $(shown one) == *" writers=4 "*mkfs=-K* ]]
	[[ $(shown two) == *" writers=5"* ]]
	[[ $(shown three) == *" writers=5 mode=append"* ]]
	[[ $(shown two)$(shown three) != *mkfs* ]]
}

@test "a matrix: the product, its names, and what ends it" {
	{ section one; printf '%s\n' 'matrix.log_size = 10m 64m' 'matrix.reflink = 0 1' \
		'[two]' 'log_size = 16m' '[three]' 'reflink = 1' \
		'[four]' 'matrix.mount = noatime | noatime,inode64'; } > file
	run -0 ackproof campaign show ./file
	[ "$(grep '^\[' <<< "$output" | xargs)" = "[one/log_size=10m,reflink=0] [one/log_size=10m,reflink=1] [one/log_size=64m,reflink=0] [one/log_size=64m,reflink=1] [two/reflink=0] [two/reflink=1] [three] [four/mount=noatime] [four/mount=noatime,inode64]" ]
	[[ $(shown one/log_size=64m,reflink=0) == *log_size=64m*reflink=0* ]]
	[[ $output == *" --log-size 64m "*" --mkfs -m\ reflink=0 "* ]]
	# a section by what it was made of, or alone
	run -0 ackproof campaign show --section one --section two/reflink=1 ./file
	[ "$(grep -c '^\[' <<< "$output")" = 5 ]
}

@test "--set and --section" {
	section one > file
	printf '%s\n' '[two]' 'matrix.reflink = 0 1' >> file
	usage_error "--set: 'one.seed', expected [[]SECTION.]KEY=VALUE$see*" \
		campaign --set one.seed ./file
	usage_error "--set: no section 'none' in this campaign; there are: one two" \
		campaign --set none.seed=1 ./file
	usage_error "--set: no section 'two/reflink=3' in this campaign; there are: one two/reflink=0 *" \
		campaign --set two/reflink=3.seed=1 ./file
	usage_error "--set: unknown key 'sede', did you mean seed?; known are: *" \
		campaign --set one.sede=1 ./file
	usage_error "--set: unknown key 'sede', did you mean seed?; known are: *" \
		campaign --set sede=1 ./file
	usage_error "--set: unknown key 'seed points'*; known are: *" \
		campaign --set 'one.seed points=1' ./file
	usage_error "./file: --set: section two/reflink=0: seed: 'x' is not a number from *" \
		campaign --set two.seed=x ./file
	usage_error "--section: no section 'none' in this campaign; there are: one two*" \
		campaign --section none ./file
	# the other section's mistake does not matter
	usage_error "./file: --set: section two/reflink=0: seed: 'x' is not a number from *" \
		campaign --set one.seed=y --set two.seed=x --section two ./file
	[[ $(shown one --set seed=5 --set two.seed=6) == *" seed=5 "* ]]
	[[ $(shown two/reflink=1 --set seed=5 --set two.seed=6) == *" seed=6 "* ]]
	[[ $(shown two/reflink=1 --set two/reflink=1.seed=7) == *" seed=7 "* ]]
	[[ $(shown two/reflink=0 --set two/reflink=1.seed=7) == *" seed=1 "* ]]
	[[ $(shown two --set two.reflink=1) == *reflink=1* ]]
	[[ $(shown one/mode=append --set matrix.mode='append mixed') == *mode=append* ]]
}

@test "noise must stay where it is put" {
	local line

	section one > file
	echo 'noise = ./jobs.fio' >> file
	for line in 'directory=/mnt' 'filename=../w0/f0' 'ioengine=exec' ' include other' \
		'opendir = /'; do
		printf '%s\n' '[a]' "$line" > jobs.fio
		usage_error "./file: line 7: section one: noise: ././jobs.fio: line 2: '$line' could lead to other files than its own" \
			campaign ./file
		usage_error "--noise: jobs.fio: line 2: '$line' could *" capture --noise jobs.fio a
	done
	echo 'rw=write' > jobs.fio
	usage_error "--noise: jobs.fio: no jobs" capture --noise jobs.fio a
	printf '%s\n' '[a]' 'filename=x' > jobs.fio
	[[ $(ackproof campaign show ./file) == *" --noise ././jobs.fio "* ]]
}
