#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards replay-log: what scripts that call the program of that name in xfstests
# rely on stays as it was there, down to the output's shape, and where that
# program takes a fault for success, ours does not.

load lib

setup()
{
	own_folder
	mklog <<- END
		write 0 1024
		flush
		fua 1024 512
		mark mkfs
		write 0 512
		discard 512 1024
		flush
		mark one
		write 4096 1024
		fua 2048 512
		flush
		mark two
	END
	image 16
}

# A log from the lines on stdin
mklog()
{
	"$built/tests/shell/mklog" log
}

# A target of $1 sectors, full of an x each
image()
{
	head -c $(($1 * 512)) /dev/zero | tr '\0' x > img
	cp img before
}

replay_log()
{
	"$built/bin/replay-log" --log log "$@"
}

# What each of img's sectors is full of: 120 is an x of image()
sectors()
{
	od -An -v -tu1 -w512 img | awk '{
		for (i = 2; i <= NF; i++)
			if ($i != $1)
				$1 = "torn"
		print $1
	}' | xargs
}

holds()
{
	echo "holds:    $(sectors)"
	echo "expected: $*"
	[ "$(sectors)" = "$*" ]
}

# Silent success
replays()
{
	cp before img
	run --separate-stderr -0 replay_log --replay img "$@"
	echo "stdout: '$output', stderr: '$stderr'"
	[ -z "$output$stderr" ]
}

# Status 0, and $1 alone is printed
prints()
{
	run --separate-stderr -0 replay_log "${@:2}"
	echo "stdout: '$output', stderr: '$stderr', expected: '$1'"
	[ "$output" = "$1" ]
	[ -z "$stderr" ]
}

# Status 1, one line like $1, and the target as it was
fails()
{
	run --separate-stderr -1 replay_log "${@:2}"
	echo "stdout: '$output', stderr: '$stderr', expected: '$1'"
	[ -z "$output" ]
	# shellcheck disable=SC2053 # it is a pattern
	[[ $stderr == replay-log:\ $1 ]]
	[[ $stderr != *$'\n'* ]]
	cmp before img
}

# The same for all that takes a place in the log
nowhere()
{
	fails "log: no $1, the log has 12 entries" --replay img "${@:2}"
	fails "log: no $1, the log has 12 entries" --find "${@:2}"
}

usage_error()
{
	run --separate-stderr -1 "$built/bin/replay-log" "${@:2}"
	echo "stdout: '$output', stderr: '$stderr', expected: '$1'"
	[ -z "$output" ]
	# shellcheck disable=SC2053 # it is a pattern
	[[ ${stderr_lines[0]} == *replay-log:\ $1 ]]
	[[ ${stderr_lines[1]} == "Usage: replay-log --log FILE"* ]]
	[ ${#stderr_lines[@]} = 2 ]
	cmp before img
}

# The options

@test "--help is for stdout" {
	run --separate-stderr -0 replay_log --help
	[[ ${lines[0]} == "Usage: replay-log --log FILE"* ]]
	[[ $output == *"Exit status: 0"* ]]
	[ -z "$stderr" ]
}

@test "wrong usage is status 1, as it was, and a usage line" {
	local option number

	usage_error 'no log' --replay img
	usage_error "unrecognized option '--salvage'" --log log --salvage
	usage_error "option '--start' is ambiguous; *" --log log --start 1
	usage_error "option '--limit' requires an argument" --log log --limit
	for number in '' -1 ' 1' 1x 0x 09 18446744073709551616; do
		usage_error "--limit: '$number' is not a number" \
			--log log --limit "$number"
	done
	for option in --start-entry --start-sector --end-sector --check; do
		usage_error "$option: '' is not a number" \
			--log log --replay img --fsck true "$option" ''
	done
	usage_error '--check: *' --log log --replay img --fsck true --check 0
	usage_error '--fsck and --check need each other' \
		--log log --replay img --fsck true
	usage_error '--fsck and --check need each other' \
		--log log --replay img --check 1
	usage_error '--start-sector is behind --end-sector' \
		--log log --replay img --start-sector 2 --end-sector 1
	usage_error '--find needs *' --log log --find
	usage_error '--find needs *' --log log --find --limit 0
}

@test "words that are no options change nothing, as they did not before" {
	run --separate-stderr -0 replay_log word --num-entries
	[ "$output" = 12 ]
	[ "$stderr" = "replay-log: 'word' is no option: ignored" ]
}

@test "numbers as in C, and prefixes of options" {
	prints 9@18 --find --lim 10
	prints 7@13 --find --lim 010
	prints 9@18 --find --lim 0xa
	prints 12 --num
	prints 6@12 --fi --start-e 0x4 --next-fl
}

@test "--find goes before --num-entries, that before --replay, that before the line" {
	prints 1@5 --find --next-flush --num-entries --replay img
	prints 12 --num-entries --replay img
	cmp before img
	prints 'Log version=1, sectorsize=512, entries=12'
	prints 'Log version=1, sectorsize=512, entries=12' --fsck false --check 1
}

@test "a log that cannot be opened, or is none" {
	rm log
	fails 'log: cannot open the log: No such file or directory'
	head -c 4096 /dev/zero > log
	fails 'log: no superblock yet: *'
	head -c 4096 before > log
	fails 'log: not a dm-log-writes log: *' --num-entries
}

@test "a log of no entries can be counted, and nothing else" {
	mklog < /dev/null
	prints 0 --num-entries
	prints 'Log version=1, sectorsize=512, entries=0'
	fails 'log: no entry 0, the log has 0 entries' --find --limit 1
	fails 'log: no entry 0, the log has 0 entries' --replay img
}

# Finding

@test "--find prints the entry, and the sector behind its data" {
	prints 3@8 --find --end-mark mkfs
	prints 11@20 --find --end-mark two
	prints 1@5 --find --next-flush
	prints 2@7 --find --next-fua
	prints 1@5 --find --next-fua --next-flush
	prints 8@16 --find --limit 9
	prints 5@11 --find --start-entry 5 --limit 1
	prints 1@5 --find --next-fua --next-flush --limit 2
	prints 0@4 --find --next-fua --next-flush --limit 1
	prints 3@8 --find --end-mark mkfs --limit 5
}

@test "the position is in the log's own sectors" {
	mklog <<- END
		sector 4096
		write 0 8192
		fua 4096 4096
		mark a
	END
	prints 0@4 --find --limit 1
	prints 1@6 --find --next-fua
	prints 2@7 --find --end-mark a
	prints 'Log version=1, sectorsize=4096, entries=3'
}

@test "it starts at an entry, or behind the first mark of that text" {
	mklog <<- END
		mark a
		flush
		mark aa
		flush
		mark a
		flush
	END
	prints 1@3 --find --start-entry 1 --next-flush
	prints 3@5 --find --start-entry 2 --next-flush
	prints 1@3 --find --start-mark a --next-flush
	prints 3@5 --find --start-mark aa --next-flush
	prints 3@5 --find --start-mark aa --next-flush --start-entry 5
	prints 4@6 --find --start-mark a --end-mark a
	prints 0@2 --find --end-mark a
	prints 2@4 --find --start-mark a --limit 2
}

@test "-vv lists what --find looks at, -v does not" {
	prints 2@7 --find --next-fua -v
	prints "seek entry 0@2: 0, size 2, flags 0x0(NONE)
seek entry 1@5: 0, size 0, flags 0x1(FLUSH)
seek entry 2@6: 2, size 1, flags 0x2(FUA)
2@7" --find --next-fua -vv
	# where to start: by number, in the old shape
	prints "seek entry 0@1: 0, size 2, flags 0x0
seek entry 1@4: 0, size 0, flags 0x1
seek entry 2@6: 2, size 1, flags 0x2(FUA)
2@7" --find --start-entry 2 --next-fua -v --verbose
	prints "seek entry 0@2: 0, size 2, flags 0x0(NONE)
seek entry 1@5: 0, size 0, flags 0x1(FLUSH)
seek entry 2@6: 2, size 1, flags 0x2(FUA)
seek entry 3@8: 0, size 0, flags 0x8(MARK)
seek entry 4@9: 0, size 1, flags 0x0(NONE)
4@10" --find --start-mark mkfs --limit 1 -vv
}

# Replaying

@test "all is replayed onto what is there" {
	replays
	holds 5 0 0 120 10 120 120 120 9 9 120 120 120 120 120 120
}

@test "up to and including the entry that it stops at" {
	replays --limit 1
	holds 1 1 120 120 120 120 120 120 120 120 120 120 120 120 120 120
	replays --next-fua
	holds 1 1 3 120 120 120 120 120 120 120 120 120 120 120 120 120
	replays --end-mark mkfs
	holds 1 1 3 120 120 120 120 120 120 120 120 120 120 120 120 120
	replays --limit 5
	holds 5 1 3 120 120 120 120 120 120 120 120 120 120 120 120 120
	replays --start-mark mkfs --next-flush
	holds 5 0 0 120 120 120 120 120 120 120 120 120 120 120 120 120
}

@test "from the entry that it starts at" {
	replays --start-entry 8 --limit 1
	holds 120 120 120 120 120 120 120 120 9 9 120 120 120 120 120 120
	replays --start-mark one --next-flush
	holds 120 120 120 120 10 120 120 120 9 9 120 120 120 120 120 120
	replays --start-mark two
	cmp before img
}

@test "--limit 0 is no limit" {
	replays --limit 0
	holds 5 0 0 120 10 120 120 120 9 9 120 120 120 120 120 120
	prints 1@5 --find --next-flush --limit 0
}

@test "--no-discard leaves discards out" {
	replays --no-discard
	holds 5 1 3 120 10 120 120 120 9 9 120 120 120 120 120 120
}

@test "-v lists what is replayed, also what has no data" {
	prints "replaying 0@2: sector 0, size 1024, flags 0x0(NONE)
replaying 1@5: sector 0, size 0, flags 0x1(FLUSH)
replaying 2@6: sector 2, size 512, flags 0x2(FUA)
replaying 3@8: sector 0, size 0, flags 0x8(MARK)
replaying 4@9: sector 0, size 512, flags 0x0(NONE)
replaying 5@11: sector 1, size 1024, flags 0x4(DISCARD)
replaying 6@12: sector 0, size 0, flags 0x1(FLUSH)" \
		-v --replay img --limit 7
}

@test "-vv lists what is out of the sector range, too" {
	prints "replaying 1@5: sector 0, size 0, flags 0x1(FLUSH)
replaying 2@6: sector 2, size 512, flags 0x2(FUA)" \
		-v --replay img --limit 3 --start-sector 2
	prints "skipping 0@2: sector 0, size 1024, flags 0x0(NONE)
replaying 1@5: sector 0, size 0, flags 0x1(FLUSH)
replaying 2@6: sector 2, size 512, flags 0x2(FUA)" \
		-vv --replay img --limit 3 --start-sector 2
	prints "seek entry 0@1: 0, size 2, flags 0x0
replaying 1@5: sector 0, size 0, flags 0x1(FLUSH)
skipping 2@6: sector 2, size 512, flags 0x2(FUA)" \
		-vv --replay img --start-entry 1 --limit 2 --end-sector 1
}

@test "the end sector is included" {
	replays --end-sector 8
	holds 5 0 0 120 10 120 120 120 9 120 120 120 120 120 120 120
	replays --start-sector 4 --end-sector 4
	holds 120 120 120 120 10 120 120 120 120 120 120 120 120 120 120 120
	replays --end-sector 0
	holds 5 120 120 120 120 120 120 120 120 120 120 120 120 120 120 120
	replays --start-sector 9 --end-sector 0xffffffffffffffff
	holds 120 120 120 120 120 120 120 120 120 9 120 120 120 120 120 120
}

@test "sectors beyond 64 bits of bytes are beyond all, and do not wrap" {
	replays --end-sector 36028797018963967	# 2^64 bytes, less one sector
	holds 5 0 0 120 10 120 120 120 9 9 120 120 120 120 120 120
	replays --start-sector 36028797018963968
	cmp before img
}

@test "a file grows by what is written to it, as it did" {
	: > before
	replays
	holds 5 0 0 0 10 0 0 0 9 9
	replays --end-sector 8
	holds 5 0 0 0 10 0 0 0 9
	replays --start-entry 3 --limit 3
	holds 5 0 0
	replays --start-entry 3 --limit 3 --no-discard
	holds 5
}

@test "a file system on the target is no reason to refuse it" {
	printf SWAPSPACE2 | dd of=before bs=1 seek=4086 conv=notrunc status=none
	replays --limit 1
}

# Checking

# The log of a checker that stores what it is shown
recorder()
{
	# shellcheck disable=SC2016 # expanded where it runs
	echo 'n=$(ls states | wc -l); cp img states/$n'
	rm -rf states
	mkdir states
}

# That log is $*: the first bytes of sectors 0 and 8, for each check
recorded()
{
	local state

	for state in $(find states -type f | sort -V); do
		od -An -tu1 -N1 "$state"
		od -An -tu1 -j4096 -N1 "$state"
	done | xargs > got
	echo "recorded: $(cat got), expected: $*"
	[ "$(cat got)" = "$*" ]
}

@test "--check N, counted from the start" {
	replays --fsck "$(recorder)" --check 4
	recorded 1 120 5 120 5 9
	replays --fsck "$(recorder)" --check 5
	recorded 5 120 5 9
	replays --fsck "$(recorder)" --check 2 --start-entry 4 --limit 5
	recorded 5 120 5 120
	replays --fsck "$(recorder)" --check 13
	recorded
	replays --fsck "$(recorder)" --check 0xffffffffffffffff
	recorded
}

@test "--check flush and --check fua, also where it stops" {
	replays --fsck "$(recorder)" --check flush
	recorded 1 120 5 120 5 9
	replays --fsck "$(recorder)" --check fua
	recorded 1 120 5 9
	replays --fsck "$(recorder)" --check flush --next-flush
	recorded 1 120
	replays --fsck "$(recorder)" --check flush --limit 6
	recorded 1 120
	replays --fsck "$(recorder)" --check fua --start-entry 3 --end-mark one
	recorded
}

@test "what a checker says comes in its place" {
	prints "replaying 0@2: sector 0, size 1024, flags 0x0(NONE)
checked
replaying 1@5: sector 0, size 0, flags 0x1(FLUSH)
checked" --replay img --limit 2 -v --check 1 --fsck 'echo checked'
}

# Status 1 at entry $2, with $1 about the checker, and nothing after it
bad_state()
{
	cp before img
	: > runs
	run --separate-stderr -1 replay_log --replay img --check flush \
		--fsck "echo >> runs; ${*:3}"
	echo "stderr: $stderr"
	[ -z "$output" ]
	# shellcheck disable=SC2053 # it is a pattern
	[[ ${stderr_lines[0]} == *": $1" ]]
	[ "${stderr_lines[-1]}" = "Fsck errored out on entry $2" ]
	[ ${#stderr_lines[@]} -le 3 ]	# the shell may say something, too
	[ "$(wc -l < runs)" = "${bad_run:-1}" ]
}

@test "a checker that exits other than 0 has found a bad state" {
	bad_state 'exit status 1' 1 false
	holds 1 1 120 120 120 120 120 120 120 120 120 120 120 120 120 120
	bad_state 'exit status 4' 1 exit 4
	bad_run=2 bad_state 'exit status 8' 6 '[ $(wc -l < runs) != 2 ] || exit 8'
	holds 5 0 0 120 120 120 120 120 120 120 120 120 120 120 120 120
}

@test "wrong before: a checker that is killed by a signal is a failure" {
	bad_state 'killed by SIGKILL' 1 'kill -9 $$'
	bad_state 'killed by SIGSEGV' 1 'ulimit -c 0; kill -SEGV $$'
}

@test "wrong before: a checker that cannot be started is a failure" {
	run --separate-stderr -1 replay_log --replay img --check 1 \
		--fsck ./no-such-command
	[[ $stderr == *"'./no-such-command': exit status 127"* ]]
	[ "${stderr_lines[-1]}" = 'Fsck errored out on entry 0' ]
	: > no-program
	run --separate-stderr -1 replay_log --replay img --check 1 \
		--fsck ./no-program
	[[ $stderr == *"'./no-program': exit status 126"* ]]
}

@test "a checker that writes to the target: a warning, and on as before" {
	run --separate-stderr -0 replay_log --replay img --check flush \
		--fsck 'printf y | dd of=img bs=512 seek=15 conv=sync,notrunc status=none'
	echo "$stderr"
	[[ $stderr == "replay-log: '"*"' has written to img: "*" entry 2 "* ]]
	[[ $stderr != *$'\n'* ]]
	holds 5 0 0 120 10 120 120 120 9 9 120 120 120 120 120 torn
}

@test "a discard zeroes also what a checker has written where zeros were" {
	mklog <<- END
		discard 0 65536
		flush
		discard 0 65536
	END
	image 128
	run -0 replay_log --replay img --check flush \
		--fsck 'printf y | dd of=img seek=3 conv=notrunc status=none'
	cmp -n 65536 img /dev/zero
}

# Where the old program is wrong

@test "wrong before: what does not exist is an error, and nothing is replayed" {
	nowhere "mark 'on' from entry 0 on" --end-mark on
	nowhere "mark 'one ' from entry 0 on" --end-mark 'one '
	nowhere "mark 'mkfs' from entry 8 on" --end-mark mkfs --start-mark one
	nowhere "mark 'three' from entry 0 on" --start-mark three --limit 1
	nowhere 'entry 12' --start-entry 12 --limit 1
	nowhere 'entry 12' --start-entry 12 --next-flush
	nowhere '13 entries from entry 0 on' --limit 13
	nowhere '5 entries from entry 8 on' --limit 5 --start-entry 8
	nowhere '1 entries from entry 12 on' --limit 1 --start-mark two
	nowhere '18446744073709551615 entries from entry 3 on' \
		--limit 0xffffffffffffffff --start-entry 3
	nowhere 'flush from entry 11 on' --next-flush --start-entry 11
	nowhere 'FUA entry from entry 10 on' --next-fua --start-entry 10
	nowhere 'flush or FUA entry from entry 11 on' \
		--next-flush --next-fua --start-entry 11
}

@test "wrong before: an end mark that does not exist, although something else stops" {
	nowhere "mark 'three' from entry 0 on" --end-mark three --next-flush
	nowhere "mark 'three' from entry 0 on" --end-mark three --limit 2
}

@test "a limit that another stop goes before need not be reached" {
	replays --limit 100 --end-mark mkfs
	holds 1 1 3 120 120 120 120 120 120 120 120 120 120 120 120 120
	replays --limit 100 --next-fua
	holds 1 1 3 120 120 120 120 120 120 120 120 120 120 120 120 120
	# nor need a flush be there that it goes before
	replays --start-entry 11 --limit 1 --next-flush
	nowhere 'flush from entry 11 on' --start-entry 11 --limit 2 --next-flush
}

@test "wrong before: an end mark with a next flush or FUA is the first that comes" {
	prints 1@5 --find --next-flush --end-mark mkfs
	prints 2@7 --find --next-fua --end-mark mkfs
	prints 3@8 --find --start-entry 3 --next-flush --end-mark mkfs
	prints 7@13 --find --start-entry 7 --next-flush --end-mark one
	replays --next-flush --end-mark mkfs
	holds 1 1 120 120 120 120 120 120 120 120 120 120 120 120 120 120
}

@test "wrong before: a discard is zeros, however long, on whatever was there" {
	mklog <<- END
		discard 0 209715200
	END
	truncate -s 256M before
	for ((i = 0; i < 200; i += 40)); do
		printf x | dd of=before bs=1M seek=$i conv=notrunc status=none
	done
	printf y | dd of=before bs=1 seek=209715200 conv=notrunc status=none
	replays
	cmp -n 209715200 img /dev/zero
	[ "$(dd if=img bs=1 skip=209715200 count=1 status=none)" = y ]
}

@test "wrong before: a discard is clipped to the sector range" {
	mklog <<< 'discard 0 4096'
	replays --start-sector 2 --end-sector 4
	holds 120 120 0 0 0 120 120 120 120 120 120 120 120 120 120 120
	mklog <<< 'discard 0 1024'
	replays --start-sector 2
	cmp before img
}

@test "wrong before: a write is clipped to the sector range" {
	mklog <<< 'write 0 4096'
	replays --start-sector 2 --end-sector 4
	holds 120 120 1 1 1 120 120 120 120 120 120 120 120 120 120 120
}

# Writes beyond $1 KiB of the target fail
limited()
(
	trap '' XFSZ
	ulimit -f "$1"
	shift
	replay_log "$@"
)

@test "wrong before: a write that fails, or is short, is an error" {
	run --separate-stderr -1 limited 4 --replay img
	[ "$stderr" = "replay-log: img: cannot write 1024 bytes at 4096, of entry 8: File too large" ]
	mklog <<< 'write 3584 1024'
	run --separate-stderr -1 limited 4 --replay img
	[ "$stderr" = "replay-log: img: cannot write 1024 bytes at 3584, of entry 0: File too large" ]
	: > img
	run --separate-stderr -1 limited 4 --replay img
	[ "$stderr" = "replay-log: img: cannot make it 4608 bytes: File too large" ]
}

@test "wrong before: a full disk is an error" {
	mklog <<< 'write 0 131072'
	mkdir full
	unshare -m mount -t tmpfs none full || skip 'cannot mount'
	# shellcheck disable=SC2016 # expanded where it runs
	run --separate-stderr -1 unshare -m sh -c '
		mount -t tmpfs -o size=64k none full
		truncate -s 1M full/img
		"$0" --log log --replay full/img' "$built/bin/replay-log"
	[[ $stderr == "replay-log: full/img: cannot write 131072 bytes at 0, of entry 0: No space left on device" ]]
}

@test "wrong before: a sync that fails is an error" {
	# a flush and a mark write nothing; this can be opened, and not synced
	run --separate-stderr -1 replay_log --replay /dev/null --start-entry 6 \
		--limit 2
	[ "$stderr" = "replay-log: /dev/null: cannot sync: Invalid argument" ]
	run --separate-stderr -1 replay_log --replay /dev/null --start-entry 6 \
		--limit 2 --check flush --fsck 'echo checked'
	[ "$output$stderr" = "replay-log: /dev/null: cannot sync: Invalid argument" ]
}

@test "wrong before: a stdout that cannot be written is an error" {
	local args

	for args in --num-entries '--find --next-flush' '-v --replay img' ''; do
		# shellcheck disable=SC2086 # they are words
		run --separate-stderr -1 eval "replay_log $args > /dev/full"
		[ "$stderr" = "replay-log: cannot write to stdout: No space left on device" ]
	done
}

@test "a target that is not there, too small, or may not be written" {
	fails 'no-target: No such file or directory' --replay no-target
	fails '/dev/full: *: entry 0 * bytes 0 to 1024, expected within *' \
		--replay /dev/full
	chmod 400 img
	# root may write all the same, unless told otherwise
	if [ "$(id -u)" = 0 ]; then
		replay_log()
		{
			setpriv --bounding-set=-dac_override \
				"$built/bin/replay-log" --log log "$@"
		}
	fi
	fails 'img: cannot open for writing: Permission denied' --replay img
}

@test "the log is no target" {
	fails 'log: is the log itself' --replay log
	ln log link
	fails 'link: is the log itself' --replay link
	prints 12 --num-entries
}

@test "a device in use is refused" {
	local loop

	truncate -s 1M disk
	loop=$(losetup -f --show disk 2> /dev/null) || skip 'no loop devices'
	mkdir mnt
	if ! mkfs.ext4 -q "$loop" || ! mount -r "$loop" mnt; then
		losetup -d "$loop"
		skip 'cannot mount'
	fi
	run --separate-stderr replay_log --replay "$loop"
	umount mnt
	losetup -d "$loop"
	[ "$status" = 2 ]
	[ "$stderr" = "replay-log: $loop: is mounted or in use" ]
}

@test "a device that is not, and one that is too small" {
	local loop

	truncate -s 8192 disk
	loop=$(losetup -f --show disk 2> /dev/null) || skip 'no loop devices'
	run --separate-stderr replay_log --replay "$loop"
	[ "$status" = 0 ] || losetup -d "$loop"
	[ "$status" = 0 ]
	mklog <<< 'write 4096 8192'
	run --separate-stderr replay_log --replay "$loop"
	losetup -d "$loop"
	[ "$status" = 1 ]
	[[ $stderr == *": entry 0 at byte 512 writes bytes 4096 to 12288, expected within the target's 8192" ]]
	cp disk img
	holds 5 0 0 0 10 0 0 0 9 9 0 0 0 0 0 0
}

@test "wrong before: a fault of the log is named, where the range reaches it" {
	local fault='log: entry 6 at byte 5632: *'

	printf '\377' | dd of=log bs=1 seek=$((11 * 512 + 100)) conv=notrunc \
		status=none
	replays --limit 6
	holds 5 0 0 120 120 120 120 120 120 120 120 120 120 120 120 120
	prints 3@8 --find --end-mark mkfs
	prints 1@5 --find --next-flush
	cp before img
	fails "$fault" --replay img
	fails "$fault" --num-entries
	fails "$fault"
	fails "log: no 7 entries from entry 0 on, the log has 6 entries; $fault" \
		--replay img --limit 7
	fails "log: no mark 'one' from entry 0 on, the log has 6 entries; $fault" \
		--find --end-mark one
	fails "log: no flush from entry 2 on, the log has 6 entries; $fault" \
		--find --next-flush --start-entry 2
	fails "log: no entry 6, the log has 6 entries; $fault" \
		--replay img --start-entry 6
	truncate -s $((9 * 512)) log
	fails 'log: truncated: entry 4 at byte 4096 *' --replay img -vv
}

@test "wrong before: entries that the superblock does not count yet are counted" {
	mklog <<- END
		write 0 512
		fua 512 512
		write 1024 512
		flush
		super 2
	END
	run --separate-stderr -0 replay_log --num-entries
	[ "$output" = 4 ]
	[ "$stderr" = "replay-log: log: the superblock counts 2 entries; read 2 more that had not been counted yet" ]
	run --separate-stderr -0 replay_log --find --next-flush
	[ "$output" = 3@8 ]
	[[ $stderr == *"read 2 more"* ]]
	run --separate-stderr -0 replay_log --replay img
	[ -z "$output" ]
	holds 1 2 3 120 120 120 120 120 120 120 120 120 120 120 120 120
}

# Scripts

# A longer log: some of it is written again and again
long_log()
{
	local i

	{
		echo "discard 0 1048576"
		echo "write 0 4096"
		echo flush
		echo "mark mkfs"
		for ((i = 0; i < 60; i++)); do
			echo "write $((i * 7 % 32 * 4096)) 8192"
			[ $((i % 5)) != 0 ] || echo flush
			[ $((i % 5)) != 0 ] || echo "fua $((i % 3 * 512)) 512"
			[ $((i % 11)) != 0 ] || echo "discard $((i * 3 % 16 * 4096)) 20480"
			[ $((i % 20)) != 0 ] || echo "mark step$((i / 20))"
		done
		echo flush
		echo "mark dm-log-writes-end"
	} | mklog
	truncate -s 0 img
	truncate -s 1M img
}

# What the log's first $1 entries leave on an empty device is in img, too
same_as_lwreplay()
{
	rm -f other other.lwstate
	"$built/bin/lwreplay" --size 1048576 --to $(($1 - 1)) log other
	cmp img other
}

# The four calls of xfstests' common/dmlogwrites

replay_to_mark()
{
	replay_log --find --end-mark "$1" >> full 2>&1 || return
	replay_log --replay img --end-mark "$1" >> full 2>&1
}

mark_to_entry()
{
	replay_log --find --end-mark "$1" 2> /dev/null | cut -f1 -d@
}

next_fua()
{
	replay_log --find --next-fua --start-entry "$1" 2> /dev/null |
		cut -f1 -d@
}

replay_to_entry()
{
	replay_log -vv --replay img --limit $(($1 + 1)) >> full 2>&1
}

@test "the calls of xfstests: mark by mark" {
	local mark

	long_log
	for mark in mkfs step0 step1 step2; do
		replay_to_mark $mark
		same_as_lwreplay $(($(mark_to_entry $mark) + 1))
	done
	run -1 replay_to_mark step3
	same_as_lwreplay $(($(mark_to_entry step2) + 1))
	[ -z "$(mark_to_entry step3)" ]
}

@test "the calls of xfstests: from FUA to FUA until none is left" {
	local entry count=0

	long_log
	entry=$(next_fua "$(mark_to_entry mkfs)")
	while [ -n "$entry" ]; do
		replay_to_entry "$entry"
		[[ $(tail -n 1 full) == "replaying $entry@"*"flags 0x2(FUA)" ]]
		same_as_lwreplay $((entry + 1))
		count=$((count + 1))
		entry=$(next_fua $((entry + 1)))
	done
	[ $count = 12 ]
}

@test "a walk over all flushes, each from the one before, ends as one replay does" {
	local start=0 at entry count=0

	long_log
	while at=$(replay_log --find --next-flush --start-entry $start \
			2> /dev/null); do
		entry=${at%@*}
		replay_log --replay img --start-entry $start \
			--limit $((entry - start + 1))
		start=$((entry + 1))
		count=$((count + 1))
	done
	[ $count = 14 ]
	same_as_lwreplay $start
	replay_log --replay img --start-entry $start
	same_as_lwreplay "$(replay_log --num-entries)"
}

@test "a check at every FUA sees the states that lwreplay makes" {
	local entry state=0

	long_log
	run -0 replay_log --replay img --check fua --fsck "$(recorder)"
	entry=$(next_fua 0)
	while [ -n "$entry" ]; do
		cp states/$state img
		same_as_lwreplay $((entry + 1))
		state=$((state + 1))
		entry=$(next_fua $((entry + 1)))
	done
	[ $state = 12 ]
}
