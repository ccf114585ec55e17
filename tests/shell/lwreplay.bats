#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards lwreplay: the image at any point, whichever way it was come by and
# whatever cut the last run off; what a checker says; and that nobody's data are
# written over.

load lib

setup()
{
	own_folder
	# each write is full of its entry's number plus 1
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
}

# A log from the lines on stdin
mklog()
{
	"$built/tests/shell/mklog" log
}

lwreplay()
{
	"$built/bin/lwreplay" "$@"
}

# What each of the sectors of image $1, or img, is full of
sectors()
{
	od -An -v -tu1 -w512 "${1-img}" | awk '{
		for (i = 2; i <= NF; i++)
			if ($i != $1)
				$1 = "torn"
		print $1
	}' | xargs
}

# holds SECTORS: those of img, and zeros behind them up to 16
holds()
{
	local expected=("$@")

	while [ ${#expected[@]} -lt 16 ]; do
		expected+=(0)
	done
	[ "$(sectors)" = "${expected[*]}" ] || {
		echo "img holds  $(sectors)"
		echo "expected   ${expected[*]}"
		return 1
	}
}

new()
{
	rm -f img img.lwstate
	lwreplay --size 8192 "$@" log img
}

# Exit status $1 and a message like $2, nothing on stdout
refuses()
{
	local status=$1 message=$2

	shift 2
	run --separate-stderr -"$status" lwreplay "$@"
	echo "stdout: '$output', stderr: '$stderr'"
	[ -z "$output" ]
	# shellcheck disable=SC2053,SC2154 # it is a pattern; bats sets it
	[[ $stderr == "lwreplay: "$message ]]
	[[ $stderr != *$'\n'* ]]
}

@test "a new image at every point" {
	new --to 0
	holds 1 1
	new --to 1
	holds 1 1
	new --to mark:mkfs
	holds 1 1 3
	new --to 4
	holds 5 1 3
	new --to mark:one
	holds 5
	new
	holds 5 0 0 0 10 0 0 0 9 9
	new --to start
	holds
	[ "$(stat -c %s img)" -eq 8192 ]
}

@test "forwards and backwards from where the image stands" {
	local to
	local -A want=([0]='1 1' [3]='1 1 3' [5]='5' [8]='5 0 0 0 0 0 0 0 9 9'
		[start]='' [end]='5 0 0 0 10 0 0 0 9 9')

	new --to 3
	for to in 8 0 end 5 3 start 8 5 0; do
		lwreplay --to $to log img
		# shellcheck disable=SC2086 # its words
		holds ${want[$to]}
	done
	# and a step back writes no more than what differs
	lwreplay --to 9 log img
	run -0 lwreplay --json --to 7 log img
	[ "$(jq -c '[.from, .to, .written, .zeroed]' <<< "$output")" = "[9,7,0,1536]" ]
}

@test "an image stands where --from says" {
	new --to 8
	rm img.lwstate
	lwreplay --from 8 --to 2 log img
	holds 1 1 3
	rm img.lwstate
	truncate -s 0 img
	truncate -s 8192 img
	lwreplay --from start --to 0 log img
	holds 1 1
	refuses 2 "--from: log: no entry 12, the log has 12" --from 12 log img
}

@test "an image of which nothing is known is left alone" {
	head -c 8192 /dev/zero | tr '\0' x > img
	cp img before
	refuses 2 "img: where it stands is not known: --from POINT, *" log img
	refuses 2 "img: cannot create: File exists" --size 8192 log img
	refuses 2 "none: No such file or directory; --size creates it" log none
	cp log copy
	ln log link
	refuses 2 "link: is the log itself" --wipe log link
	cmp log copy
	cmp img before
	lwreplay --wipe --to 0 log img
	holds 1 1
}

@test "an image that holds a file system needs --force" {
	truncate -s 20M img
	mkfs.ext2 -q img 2> /dev/null || mkfs.xfs -q --unsupported img
	cp img before
	refuses 2 "img: holds *: use --force to overwrite it" --wipe log img
	refuses 2 "img: holds *: use --force to overwrite it" --from 0 log img
	cmp img before
	lwreplay --wipe --force --to 0 log img
	[ "$(sectors <(head -c 1536 img))" = "1 1 0" ]
}

@test "what there is not is refused, and nothing is written" {
	local point

	new --to 3
	cp img before
	cp img.lwstate state
	for point in 12 mark:three 18446744073709551615; do
		refuses 2 "--to: log: no *" --to $point log img
		refuses 2 "--at: log: no *" --at $point log img
	done
	refuses 2 "--to: 'mark', expected *" --to mark log img
	refuses 2 "--at: 'every:0': '0' is not a count" --at every:0 log img
	refuses 2 "--fsck needs --at*" --fsck true log img
	refuses 2 "one of --size, --wipe and --from*" --wipe --from 3 log img
	refuses 2 "--start-sector is behind --end-sector" \
		--start-sector 3 --end-sector 2 log img
	refuses 2 "expected a log and a target*" log
	refuses 2 "none: cannot open the log*" none img
	cmp img before
	cmp img.lwstate state
	run -2 lwreplay --none log img
}

@test "a file that says where another log's image stands is refused" {
	new --to 3
	mklog <<- END
		write 0 1024
		flush
		fua 1024 512
		mark other
	END
	refuses 2 "img.lwstate: of another log, or of other sectors; *" log img
	echo nonsense > img.lwstate
	refuses 2 "img.lwstate: line 1: *; --from or --wipe starts anew" log img
	holds 1 1 3
	lwreplay --wipe --to 0 log img
	holds 1 1
}

@test "--where keeps it elsewhere" {
	truncate -s 8192 img
	lwreplay --from start --to 3 --where elsewhere log img
	[ ! -e img.lwstate ]
	lwreplay --where elsewhere --to 0 log img
	holds 1 1
}

@test "a run that was cut off on its way is set right" {
	local at to way

	# forwards and backwards, with parts of both states
	for way in "3 9" "9 3" "0 11" "11 0"; do
		read -r at to <<< "$way"
		new --to "$at"
		cp img.lwstate state
		lwreplay --to "$to" log img
		cp img other
		new --to "$at"
		# every second sector is of the state that it was on its way to
		for ((i = 0; i < 16; i += 2)); do
			dd if=other of=img bs=512 count=1 skip=$i seek=$i \
				conv=notrunc status=none
		done
		jq -c ".to = $((to + 1))" state > img.lwstate
		run --separate-stderr -0 lwreplay --to 7 log img
		[[ $stderr == *"img: a run from entry $at to entry $to was cut off"* ]]
		holds 5
		run --separate-stderr -0 lwreplay --to 2 log img
		[ -z "$stderr" ]
		holds 1 1 3
	done
}

@test "where it goes is told before it goes" {
	new --to 2
	lwreplay --to 9 --at 4 --fsck 'jq -e ".at == 3 and .to == 10" img.lwstate' log img
	lwreplay --to 1 --at 4 --fsck 'jq -e ".at == 10 and .to == 2" img.lwstate' log img
	lwreplay --wipe --to 9 --at 4 \
		--fsck 'jq -e ".at == 0 and .to == 10" img.lwstate' log img
	jq -e '.at == 10 and .to == 10' img.lwstate
}

@test "kill -9 at any moment, and again" {
	local i pid

	# long enough to be cut off: many writes over each other
	for ((i = 0; i < 20000; i++)); do
		echo "write $((i * 7919 % 16384 * 512)) 4096"
	done | mklog
	lwreplay --size 16M --to 999 log want
	lwreplay --size 16M --to start log img
	for i in 03 06 05 07 07 08 09 10 11 13 15; do
		"$built/bin/lwreplay" --to $((1$i % 2 ? 19999 : 100)) log img \
			2> /dev/null &
		pid=$!
		sleep 0.$i
		kill -9 $pid 2> /dev/null || :
		wait $pid || :
	done
	lwreplay --to 999 log img
	cmp img want
}

@test "two runs at once on one target: the second is refused" {
	new --to 3
	lwreplay --at 8 --fsck 'touch ready; sleep 60 & echo $! > sleep; wait' \
		log img &
	while [ ! -e sleep ]; do
		sleep 0.05
	done
	refuses 2 "img: another run is writing to it" --to 0 log img
	kill "$(cat sleep)"
	wait
	holds 5 0 0 0 10 0 0 0 9 9
}

@test "only the sectors that are asked for" {
	new --start-sector 1 --end-sector 2
	holds
	new --start-sector 1 --end-sector 2 --to 4
	holds 0 1 3
	lwreplay --start-sector 1 --end-sector 2 --to 0 log img
	holds 0 1
	refuses 2 "img.lwstate: of another log, or of other sectors; *" log img
	# what lies outside may be outside of the target as well
	rm img*
	lwreplay --size 1024 --end-sector 1 log img
	[ "$(sectors)" = "5 0" ]
}

@test "sector numbers whose bytes do not fit 64 bits" {
	new --start-sector $((1 << 55))
	holds
	new --end-sector $(((1 << 55) - 1))
	holds 5 0 0 0 10 0 0 0 9 9
	new --start-sector 2 --end-sector 18446744073709551615 --to 4
	holds 0 0 3
}

@test "a write past the target's end: where, and no image is left" {
	refuses 1 "img: log: entry 2 at byte 2560 writes bytes 1024 to 1536, expected within the target's 1024" \
		--size 1024 log img
	[ ! -e img ]
}

@test "a checker sees each state at the points on the way" {
	new --at flush --fsck 'cp "$LWREPLAY_TARGET" "at $LWREPLAY_POINT"'
	[ "$(sectors 'at entry 1')" = "1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0" ]
	[ "$(sectors 'at entry 6')" = "5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0" ]
	[ "$(sectors 'at entry 10')" = "5 0 0 0 10 0 0 0 9 9 0 0 0 0 0 0" ]
	[ "$(find . -name 'at *' | wc -l)" -eq 3 ]
	# backwards, from where it stands
	rm at*
	lwreplay --to 4 --at every:1 --fsck 'echo "$LWREPLAY_POINT" >> points' \
		log img
	[ "$(paste -s -d, points)" = "entry 11,entry 8,entry 7,entry 4" ]
}

@test "equal states are checked once" {
	run --separate-stderr -0 new --json --at every:1 --fsck 'echo x >> runs'
	[ "$(wc -l < runs)" -eq 6 ]
	jq -e '.checked == 6 and .same == 6 and .bad == 0 and
		(.stops | length == 12) and
		.stops[1].same_as == 0 and .stops[7].same_as == 5' <<< "$output"
	# whichever way they came about
	mklog <<- END
		write 0 512
		write 512 512
		discard 0 8192
		discard 512 512
	END
	run --separate-stderr -0 new --json --at start,every:1
	jq -e '.stops[3].same_as == null and .stops[3].digest == .stops[0].digest' \
		<<< "$output"
}

@test "a checker's word: its status, its signal, its absence" {
	local fsck want

	while IFS=: read -r fsck want; do
		run --separate-stderr -1 new --at 2,8 --fsck "$fsck"
		[ "${lines[0]}" = "entry 2: bad, $want" ]
		[ "${lines[1]}" = "1 states checked, 0 the same as one before, 1 bad" ]
		# it stays where it is bad, for people to look at
		holds 1 1 3
	done <<- END
		exit 3:exit status 3
		kill -9 \$\$:killed by SIGKILL
		kill -SEGV \$\$:killed by SIGSEGV
		no-such-program:exit status 127: the shell cannot find the command
		/dev/null:exit status 126: the shell cannot run the command
	END
}

@test "--keep-going checks the rest" {
	run --separate-stderr -1 new --keep-going --at every:1 --fsck \
		'[ "$LWREPLAY_POINT" != "entry 2" ]'
	echo "$output"
	[ "${lines[0]}" = "entry 2: bad, exit status 1" ]
	[ "${lines[1]}" = "entry 3: bad, the same state as at entry 2" ]
	[ "${lines[2]}" = "6 states checked, 6 the same as one before, 2 bad" ]
	holds 5 0 0 0 10 0 0 0 9 9
}

@test "a checker that writes to the target spoils what comes" {
	run --separate-stderr -1 new --at 2,8 --fsck 'sleep 0.02; echo x >> img'
	[[ $stderr == *"has written to img, which holds no state any more"* ]]
}

@test "--verify-against: what differs, and who wrote it" {
	new
	cp img other
	run -0 lwreplay --verify-against other log img
	[ "$output" = "img is like other" ]
	printf y | dd of=other bs=1 seek=10 conv=notrunc status=none
	printf y | dd of=other bs=1 seek=4100 conv=notrunc status=none
	printf y | dd of=other bs=1 seek=8000 conv=notrunc status=none
	run -1 lwreplay --verify-against other log img
	echo "$output"
	[ "${lines[0]}" = "img differs from other in 3 sectors of 512 bytes" ]
	[ "${lines[1]}" = "  bytes 0 to 512: the first were written last by entry 4" ]
	[ "${lines[2]}" = "  bytes 4096 to 4608: the first were written last by entry 8" ]
	[ "${lines[3]}" = "  bytes 7680 to 8192: no entry wrote there" ]
	run -1 lwreplay --json --verify-against other log img
	jq -e '.differing_sectors == 3 and .differences[1].entry == 8' <<< "$output"
	run -0 lwreplay --from end --start-sector 1 --end-sector 7 --verify-against other log img
	truncate -s 8191 other
	refuses 1 "other: 8191 bytes, expected the 8192 of img" --from end \
		--verify-against other log img
}

@test "a log at fault: up to the fault, and past it if it is to be salvaged" {
	truncate -s 4096 log
	new --to 3
	holds 1 1 3
	refuses 1 "--to: log: truncated: entry 4 of 12 at byte 4096, *" --to 4 log img
	refuses 1 "--to: log: truncated: entry 4 of 12 at byte 4096, *" log img
	run --separate-stderr -0 new --salvage
	[[ $stderr == *"salvaged the 4 entries before it, left out 8" ]]
	holds 1 1 3
}

@test "a superblock that counts too few" {
	mklog <<- END
		write 0 512
		fua 512 512
		write 1024 512
		mark last
		super 2
	END
	run --separate-stderr -0 new
	[ "$stderr" = "lwreplay: log: the superblock counts 2 entries; read 2 more that had not been counted yet" ]
	holds 1 2 3
}

@test "an index that was kept, and one that is asked for" {
	new --index idx --to 3
	[ -s idx ]
	new --index idx
	holds 5 0 0 0 10 0 0 0 9 9
	mklog <<< 'write 0 512'
	run --separate-stderr -0 new --index idx
	[[ $stderr == "lwreplay: idx: built anew: "* ]]
	holds 1
	refuses 1 "/no/such*: cannot create: *" --wipe --index /no/such log img
}

@test "a disk that is full" {
	trap '' XFSZ
	head -c 1024 /dev/zero > img
	truncate -s 8192 img
	(
		ulimit -f 2
		run --separate-stderr -1 lwreplay --from start log img
		[[ $stderr == *"cannot write 1024 bytes at 4096, of entry 8: File too large" ]]
	)
}

@test "stdout that cannot be written" {
	run --separate-stderr -1 bash -c '"$1" --size 8192 --json log img > /dev/full' - "$built/bin/lwreplay"
	[[ $stderr == *"cannot write to stdout: No space left on device" ]]
}

@test "-v lists what is applied" {
	run -0 new -v --to 2
	[ "${lines[0]}" = "0: byte 0, 1024 bytes, NONE" ]
	[ "${lines[1]}" = "1: byte 0, 0 bytes, FLUSH" ]
	[ "${lines[2]}" = "2: byte 1024, 512 bytes, FUA" ]
}
