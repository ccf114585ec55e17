#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards lwbisect: planted windows of bad states are found within the budget, what
# is not proven is not claimed, and an exit status that is no verdict is none.

load lib

# The first sector of the device is full of 255 in a state that is bad.
setup()
{
	own_folder
	cat > good <<- 'END'
		#!/bin/sh
		echo "$LWREPLAY_POINT" >> calls
		[ "$(head -c 1 "$LWREPLAY_TARGET" | od -An -tu1)" -ne 255 ]
	END
	chmod +x good
	PATH=$built/bin:$PATH
}

# mklog N [ENTRY FILL]...: a log of N writes, of which those go to the first sector
mklog()
{
	local nr=$1

	shift
	rm -f log
	printf '%s %s\n' "$@" | awk -v nr="$nr" '
		{ fill[$1] = $2 }
		END {
			for (i = 0; i < nr; i++)
				if (i in fill)
					print "write 0 512 fill " fill[i]
				else
					print "write " 512 * (1 + i % 50) " 512"
		}' | "$built/tests/shell/mklog" log
}

# bisect STATUS [OPTION]...: leaves report.json, and checks what is always so
bisect()
{
	local status=$1

	shift
	rm -f calls
	run --separate-stderr -"$status" lwbisect --check ./good --size 64K --json "$@" log img
	echo "$output" > report.json
	# shellcheck disable=SC2154 # bats sets it
	[ -z "$stderr" ]
	[ "$(wc -l < calls)" -eq "$(jq .checks report.json)" ]
	[ "$(sort -u calls | wc -l)" -eq "$(wc -l < calls)" ]
	[ ! -e img ] && [ ! -e img.lwstate ]
}

says()
{
	jq -e "$@" report.json > /dev/null || {
		cat report.json
		return 1
	}
}

# The windows, where all edges are proven
windows()
{
	jq -c 'if all(.bad[]; .first_proven and .last_proven) then
		[.bad[] | [.first, .last]] else "not proven" end' report.json
}

# Exit status $1 and a message like $2, nothing on stdout
refuses()
{
	local status=$1 message=$2

	shift 2
	run --separate-stderr -"$status" lwbisect "$@"
	echo "stdout: '$output', stderr: '$stderr'"
	[ -z "$output" ]
	# shellcheck disable=SC2053 # it is a pattern
	[[ $stderr == *"lwbisect: "$message ]]
}

@test "20,000 entries, bad from one of them on" {
	local entry

	for entry in 0 1 7777 19999; do
		mklog 20000 $entry 255
		bisect 1
		[ "$(windows)" = "[[$entry,19999]]" ]
		says --argjson entry $entry '.points == 20000 and .checks <= 60 and
			(.heals | not) and .first_bad.entry == $entry and
			.first_bad.proven and .first_bad.good_before >= ([$entry, 8] | min)'
	done
}

@test "20,000 entries, all good" {
	mklog 20000
	bisect 0
	says '.checks == 60 and .bad == [] and .first_bad == null and .reproduce == null and
		.good[0].gap.points < 1000 and (.all_checked | not)'
}

@test "20,000 entries, a window and two windows" {
	mklog 20000 6001 255 11235 0
	bisect 1
	[ "$(windows)" = "[[6001,11234]]" ]
	says '.checks <= 60 and .heals'
	mklog 20000 6001 255 11235 0 13003 255 18002 0
	bisect 1
	[ "$(windows)" = "[[6001,11234],[13003,18001]]" ]
	says '.checks <= 60 and .heals'
}

@test "20,000 entries, one of them bad" {
	mklog 20000 12345 255 12346 0
	bisect 1 --suspects 12345
	[ "$(windows)" = "[[12345,12345]]" ]
	says '.checks <= 60 and .heals and .suspects == 1 and .suspects_checked == 1'
	# without a hint it is missed, and that it may be is told
	bisect 0
	says '.good[0].gap.points >= 1'
	run -0 lwbisect --check ./good --size 64K log img
	[[ $output == *"would be missed: a bad window of up to "* ]]
	# --from and --to lead to it, as --exhaustive does
	bisect 1 --from 12300 --to 12400 --exhaustive
	[ "$(windows)" = "[[12345,12345]]" ]
	says '.all_checked and .checks == 101 and .from == 12300 and .to == 12400'
	bisect 1 --from 12330 --to 12360
	[ "$(windows)" = "[[12345,12345]]" ]
}

@test "a budget that is too small proves less, and says so" {
	mklog 20000 6001 255 11235 0
	bisect 1 --budget 9
	says '.checks == 9 and (.first_bad.proven | not) and
		(.bad | length) == 1 and (.bad[0] | .may_begin <= 6001 and .first >= 6001 and
			.last <= 11234 and .may_end >= 11234)'
	run -1 lwbisect --check ./good --size 64K --budget 9 log img
	[[ $output == *"first bad: not proven, one of the entries "* ]]
}

@test "what leaves the state as it is is not checked" {
	"$built/tests/shell/mklog" log <<- END
		flush
		write 0 512 fill 1
		flush
		mark a
		write 0 512 fill 255
		mark b
		flush
		write 0 512 fill 2
		mark c
	END
	bisect 1
	[ "$(windows)" = "[[4,6]]" ]
	says '.points == 4 and .checks == 4 and .all_checked and
		[.good[] | [.first, .last]] == [[0, 3], [7, 8]]'
	bisect 1 --at mark
	says '.points == 3 and [.bad[] | [.first, .last]] == [[5, 5]]'
	bisect 1 --at every:2 --to mark:b
	says '.points == 3 and [.bad[] | [.first, .last]] == [[5, 5]]'
}

@test "the report for people" {
	mklog 40 20 255 23 0
	run --separate-stderr -1 lwbisect --check ./good --size 64K log img
	diff - <(echo "$output") <<- END
		40 states of the entries 0 to 39, 40 checked: 1 bad window
		bad from entry 20 to entry 22, 3 of 3 states checked
		not monotonic: bad states become good again
		first bad: entry 20; the 20 states next before it are good
		reproduce: lwreplay --size 65536 --fsck ./good --at 20 log img
	END
	# and the line does what it says
	run -1 bash -c "${lines[4]#reproduce: }"
	[ "${lines[0]}" = "entry 20: bad, exit status 1" ]
}

@test "a command and names that a shell would take apart" {
	mklog 40 20 255
	mv log "a log"
	run -1 lwbisect --check "./good 'of it'" --size 64K "a log" "an img"
	[ "${lines[-1]}" = "reproduce: lwreplay --size 65536 --fsck './good '\\''of it'\\''' --at 20 'a log' 'an img'" ]
	run -1 bash -c "${lines[-1]#reproduce: }"
	[ "${lines[0]}" = "entry 20: bad, exit status 1" ]
}

@test "what is no verdict" {
	local status

	mklog 100 50 255
	for status in 126 127 128 137 255; do
		refuses 77 "entry 0: 'exit $status' gives no verdict: exit status $status*" \
			--check "exit $status" --size 64K log img
		[ ! -e img ] && [ ! -e img.lwstate ]
	done
	refuses 77 "entry 0: '*' gives no verdict: killed by SIGTERM" \
		--check 'kill $$' --size 64K log img
	# it cannot tell of some, and bad is any other status
	# shellcheck disable=SC2016 # they are for the command
	run -1 lwbisect --json --size 64K --check '
		n=${LWREPLAY_POINT#entry }
		[ $n -lt 47 ] || [ $n -gt 53 ] || exit 125
		[ $n -lt 50 ] || exit 124' log img
	echo "$output" > report.json
	says '.cannot_tell == [range(47; 54)] and (.all_checked | not) and
		(.first_bad | .entry == 54 and (.proven | not)) and
		.bad[0].may_begin == 47 and .good[0].may_end == 53'
	run -0 lwbisect --json --size 64K --check 'exit 125' log img
	echo "$output" > report.json
	says '.bad == [] and .good == [] and (.cannot_tell | length) == 60'
}

@test "a command that writes to the target" {
	mklog 100
	# shellcheck disable=SC2016 # it is for the command
	refuses 77 "'*' has written to img, *" --size 64K \
		--check 'echo x >> "$LWREPLAY_TARGET"' log img
	[ ! -e img ]
}

@test "a run that was killed can be run again" {
	mklog 100 50 255
	run -137 lwbisect --check 'kill -KILL $PPID' --size 64K log img
	[ -e img ] && [ -e img.lwstate ]
	run --separate-stderr -1 lwbisect --check ./good --size 64K --budget 20 log img
	[[ $stderr == "lwbisect: img: a run that was cut off has left it: it is made anew" ]]
	[[ $output == *"first bad: entry 50;"* ]]
	[ ! -e img ] && [ ! -e img.lwstate ]
}

@test "somebody else's file is left alone" {
	mklog 100 50 255
	echo mine > img
	refuses 2 "img: exists already" --check ./good --size 64K log img
	[ "$(cat img)" = mine ]
	# also an image that lwreplay has made
	rm img
	lwreplay --size 64K --to 10 log img
	refuses 2 "img: exists already" --check ./good --size 64K log img
	lwreplay --to 11 log img
	cp log copy
	refuses 2 "log: is the log itself" --check ./good --wipe log log
	cmp log copy
	# one that another run works on
	rm img img.lwstate
	# shellcheck disable=SC2016 # it is for the command
	run -0 lwbisect --check 'lwbisect --check true --size 64K log img 2>> said && exit 127
		lwbisect --check true --wipe log img 2>> said && exit 127; true' \
		--size 64K --budget 1 log img
	cat said
	[ "$(cat said)" = "lwbisect: img: exists already
lwbisect: img: another run is writing to it" ]
}

@test "--wipe leaves the first bad state" {
	mklog 100 50 255 60 0
	head -c 64K /dev/urandom > img
	run -1 lwbisect --check ./good --wipe log img
	[[ ${lines[-1]} == "reproduce: lwreplay --wipe --fsck ./good --at 50 log img" ]]
	lwreplay --size 64K --to 50 log want
	cmp img want
	# lwreplay goes on from there
	lwreplay --to 70 log img
	lwreplay --to 70 log want
	cmp img want
	rm img.lwstate
	truncate -s 20M img
	mkfs.ext2 -q img
	cp img before
	refuses 2 "img: holds *: use --force to overwrite it" --check ./good --wipe log img
	cmp img before
	run -1 lwbisect --check ./good --wipe --force log img
}

@test "usage" {
	mklog 100
	refuses 2 "expected --check; *" --size 64K log img
	refuses 2 "expected --size or --wipe, *" --check true log img
	refuses 2 "expected --size or --wipe, *" --check true --size 64K --wipe log img
	refuses 2 "expected a log and a target; *" --check true --size 64K log
	refuses 2 "--budget: *" --check true --size 64K --budget 0 log img
	refuses 2 "--from: log: no entry 100, the log has 100" --check true --size 64K \
		--from 100 log img
	refuses 2 "--from: entry 5 is behind entry 4 of --to" --check true --size 64K \
		--from 5 --to 4 log img
	refuses 2 "--at: none of the entries 0 to 99 is 'mark'" --check true --size 64K \
		--at mark log img
	refuses 2 "--suspects: *" --check true --size 64K --suspects x log img
	refuses 2 "img: No such file or directory; --size creates it" --check true --wipe log img
	refuses 2 "none: *" --check true --size 64K none img
	[ ! -e img ]
	run -0 lwbisect --help
	[[ ${lines[0]} == "Usage: lwbisect "* ]]
}
