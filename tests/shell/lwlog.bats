#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards what lwlog prints of a log, finds in it, says to its faults, and copies
# of it. The logs are those that mklog's words describe.

load lib

setup()
{
	own_folder
	sample log
}

teardown()
{
	[ -z "${device-}" ] || losetup -d "$device"
}

lwlog()
{
	"$built/bin/lwlog" "$@"
}

mklog()
{
	"$built/tests/shell/mklog" "$@"
}

# Log $1 has an entry of each kind, and has ended as it should
sample()
{
	mklog "$1" <<- END
		mark begin
		write 0 4096
		write 8192 4096 fua metadata
		flush
		discard 1048576 1048576
		mark ack:1
		write 512 512 metadata
		flush fua
		mark ack:2
		mark dm-log-writes-end
	END
}

# There are these files, in the order of their names, and no other but bats' own
files_are()
{
	local there

	there=$(find . -mindepth 1 -maxdepth 1 ! -name 'separate-stderr-*' \
		-printf '%f\n' | LC_ALL=C sort | paste -s -d ' ')
	echo "there: $there"
	[ "$there" = "$*" ]
}

# Exit status $1, nothing on stdout, and $2, one line, on stderr
lwlog_fails()
{
	local status=$1 message=$2

	shift 2
	run --separate-stderr -"$status" lwlog "$@"
	echo "stdout: '$output', stderr: '$stderr', expected: '$message'"
	[ -z "$output" ]
	# shellcheck disable=SC2053 # it is a pattern
	[[ $stderr == "lwlog: "$message ]]
	[[ $stderr != *$'\n'* ]]
}

# The numbers of the entries in lines of JSON: one line of them
entries()
{
	sed -E 's/^\{"entry":([0-9]+),.*/\1/' | paste -s -d ' '
}

# The numbers of the entries that list prints
numbers()
{
	lwlog list --json "$@" | entries
}

# selects NUMBERS FILTER...: of the sample, list has these, and find the first
# and the last of them, with an index and without
selects()
{
	local want=$1 index

	shift
	[ "$(numbers "$@" log)" = "$want" ]
	[ -e index ] || lwlog index --index index log > index.out
	for index in '' --index=index; do
		run -0 lwlog find $index --json "$@" log
		[[ $output == "{\"entry\":${want%% *},"* ]]
		run -0 lwlog find $index --json --last "$@" log
		[[ $output == "{\"entry\":${want##* },"* ]]
	done
}

# Nothing is listed, and find says so, with an index and without
selects_none()
{
	[ -z "$(numbers "$@" log)" ]
	lwlog_fails 1 'log: none of 10 entries is like that' find "$@" log
	lwlog index --index index log > index.out
	lwlog_fails 1 'log: none of 10 entries is like that' \
		find --index index "$@" log
}

@test "help: of all commands, and of each" {
	local command

	run --separate-stderr -0 lwlog --help
	[ "${lines[0]}" = "Usage: lwlog COMMAND [OPTION]... LOG" ]
	[[ $output == *"Exit status: 0"* ]]
	[ -z "$stderr" ]
	for command in stat list find tail check convert index; do
		[[ $output == *$'\n'"lwlog $command "* ]]
	done
	for command in stat list find tail check convert index; do
		run --separate-stderr -0 lwlog "$command" --help
		[[ $output == "Usage: lwlog $command "*"Exit status: 0"* ]]
		[ -z "$stderr" ]
		run -0 lwlog "$command" -h
	done
	run -0 lwlog find --help
	[[ $output == *"--sectors A[-B]"* ]]
	run -0 lwlog stat --help
	[[ $output != *"--sectors"* ]]
}

@test "usage: commands, options and arguments" {
	local command

	lwlog_fails 2 'expected a command; see lwlog --help'
	lwlog_fails 2 "unknown command 'none'; see lwlog --help" none log
	lwlog_fails 2 "unknown command '--json'; see lwlog --help" --json
	for command in stat list find tail check index; do
		lwlog_fails 2 "expected one log; see lwlog $command --help" \
			"$command"
		lwlog_fails 2 "expected one log; see lwlog $command --help" \
			"$command" log log
		run --separate-stderr -2 lwlog "$command" --none log
		[[ $stderr == *"lwlog: unrecognized option '--none'" ]]
	done
	lwlog_fails 2 'expected a log and a new file; see lwlog convert --help' \
		convert log
	lwlog_fails 2 'expected a log and a new file; see lwlog convert --help' \
		convert log a b
	# an option of another command
	run --separate-stderr -2 lwlog stat --limit 3 log
	run --separate-stderr -2 lwlog list --index log.lwindex log
	[[ $stderr == *"unrecognized option '--index'" ]]
}

@test "usage: values" {
	lwlog_fails 2 "--limit: 'x' is not a number from *" list --limit x log
	lwlog_fails 2 "--from: '-1', expected an entry's number, mark:TEXT, start or end" \
		list --from -1 log
	lwlog_fails 2 "--to: 'ends', expected an entry's number, mark:TEXT, start or end" \
		find --to ends log
	lwlog_fails 2 "--flags: 'all', expected flush, fua, discard, mark, metadata or write" \
		list --flags flush,all log
	lwlog_fails 2 "--flags: '', expected *" list --flags '' log
	for range in x 1-x -1 2-1 1-2-3 ''; do
		lwlog_fails 2 "--sectors: '$range', expected A or A-B" \
			list "--sectors=$range" log
	done
	lwlog_fails 2 "--entry: 'x' is not a number from *" find --entry x log
	lwlog_fails 2 "--lines: 'x' is not a number from *" tail -n x log
	lwlog_fails 2 "--level: '23' is not a number from 1 to 22" \
		convert --level 23 log a.zst
	lwlog_fails 2 "--frame: '0' is not a number from 1 to 1048576" \
		convert --frame 0 log a.zst
}

@test "no log: each command says so, with status 2" {
	local command

	echo 'no log, and longer than one sector is' > short
	yes 'no log' | head -c 4096 > long
	head -c 4096 /dev/zero > zeros
	: > empty
	for command in stat list find tail check convert index; do
		set -- "$command"
		[ "$command" != convert ] || set -- convert out
		# convert's output is last
		lwlog_fails 2 'none: cannot open the log: No such file or directory' \
			"$1" none "${@:2}"
		lwlog_fails 2 '.: neither a file nor a block device' \
			"$1" . "${@:2}"
		lwlog_fails 2 'short: not a dm-log-writes log: 38 bytes, expected a superblock *' \
			"$1" short "${@:2}"
		lwlog_fails 2 'empty: not a dm-log-writes log: 0 bytes, *' \
			"$1" empty "${@:2}"
		lwlog_fails 2 'long: not a dm-log-writes log: magic 0x* at byte 0, expected *' \
			"$1" long "${@:2}"
		lwlog_fails 2 'zeros: no superblock yet: zeros at byte 0, *' \
			"$1" zeros "${@:2}"
		[ ! -e out ]
	done
}

@test "stat: what there is" {
	run --separate-stderr -0 lwlog stat log
	[ -z "$stderr" ]
	diff - <(echo "$output") <<- END
		size               14336
		sector size        512
		superblock counts  10
		entries            10
		writes             2
		flushes            2
		FUA                2
		discards           1
		marks              4
		metadata           2
		data               8704
		discarded          2048 sectors, 1048576 bytes
		written up to      24 sectors, 12288 bytes
		discarded up to    4096 sectors, 2097152 bytes
		used up to         14336
		first mark         0: begin
		last mark          9: dm-log-writes-end
		clean end          yes
	END
}

@test "stat: as JSON" {
	run --separate-stderr -0 lwlog stat --json log
	[ "$(jq -c '[.size, .sector_size, .counted, .entries, .writes, .flushes,
		     .fua, .discards, .marks, .metadata]' <<< "$output")" = \
	  '[14336,512,10,10,2,2,2,1,4,2]' ]
	[ "$(jq -c '[.data_bytes, .discarded_sectors, .written_end_sector,
		     .discarded_end_sector, .used]' <<< "$output")" = \
	  '[8704,2048,24,4096,14336]' ]
	[ "$(jq -c '[.first_mark, .last_mark, .clean_end, .note, .fault]' \
	     <<< "$output")" = \
	  '[{"entry":0,"text":"begin"},{"entry":9,"text":"dm-log-writes-end"},true,null,null]' ]
}

@test "stat: an empty log, and another sector size" {
	mklog log <<< 'sector 4096'
	run -0 lwlog stat --json log
	[ "$(jq -c '[.size, .sector_size, .entries, .used, .first_mark, .last_mark, .clean_end]' \
	     <<< "$output")" = '[4096,4096,0,4096,null,null,false]' ]
	run -0 lwlog stat log
	[[ $output != *mark\ * ]]
	[[ $output == *"clean end          no" ]]
	mklog log <<- END
		sector 4096
		write 8192 8192
	END
	run -0 lwlog stat --json log
	[ "$(jq -c '[.data_bytes, .written_end_sector, .used]' <<< "$output")" = \
	  '[8192,4,16384]' ]
}

@test "stat: numbers that are too large for JSON, or for bytes" {
	mklog log <<- END
		header 0 0x7fffffffffffff 4 0
		header 0 0x7fffffffffffff 4 0
		mark dm-log-writes-end
		super 0xffffffffffffffff
	END
	run --separate-stderr -0 lwlog stat --json log
	[[ $output == *'"counted": null,'* ]]
	[[ $output == *'"discarded_sectors": 72057594037927934,'* ]]
	[[ $output == *'"discarded_end_sector": 36028797018963967,'* ]]
	jq -e .clean_end <<< "$output"
	run --separate-stderr -0 lwlog stat log
	[[ $output == *"superblock counts  18446744073709551615"* ]]
	[[ $output == *"discarded          72057594037927934 sectors"$'\n'* ]]
	[[ $output == *"discarded up to    36028797018963967 sectors, 18446744073709551104 bytes"* ]]
	run -0 lwlog list --json --limit 1 log
	[ "$output" = '{"entry":0,"offset":512,"sector":0,"sectors":36028797018963967,"flags":"DISCARD"}' ]
}

@test "stat, list, tail: a log at fault: what there is, then the fault" {
	local command

	mklog log <<- END
		mark one
		flush
		header 0 0 0x100 0
		flush
	END
	for command in stat list tail; do
		run --separate-stderr -1 lwlog "$command" log
		[[ $output == *one* ]]
		[ "$stderr" = "lwlog: log: entry 2 at byte 1536: flags 0x100, expected none but FLUSH, FUA, DISCARD, MARK and METADATA" ]
	done
	[ "$(numbers log)" = "0 1" ]
	run --separate-stderr -1 lwlog stat --json log
	[ "$(jq -c '[.entries, .used, .fault[:14]]' <<< "$output")" = \
	  '[2,1536,"log: entry 2 a"]' ]
}

@test "--salvage takes what is before a fault" {
	local command

	mklog log <<- END
		mark one
		flush
		header 0 0 0x100 0
	END
	for command in stat list tail; do
		run --separate-stderr -0 lwlog "$command" --salvage log
		[[ $output == *one* ]]
		[ "$stderr" = "lwlog: log: entry 2 at byte 1536: flags 0x100, expected none but FLUSH, FUA, DISCARD, MARK and METADATA: salvaged the 2 entries before it, left out 1" ]
	done
	run --separate-stderr -0 lwlog find --salvage --last log
	[[ $output == *FLUSH ]]
	run --separate-stderr -0 lwlog stat --salvage --json log
	[ "$(jq -c '[.entries, .fault, .note[:4]]' <<< "$output")" = \
	  '[2,null,"log:"]' ]
	mklog log <<- END
		flush
		super none
	END
	run --separate-stderr -0 lwlog list --salvage --json log
	[[ $output == '{"entry":0,'* ]]
	[[ $stderr == 'lwlog: log: no superblock: salvaged by the first entry at byte 512' ]]
}

@test "a note is told once" {
	local command
	local note='log: the superblock counts 1 entries; read 2 more that had not been counted yet'

	mklog log <<- END
		mark one
		write 0 512
		flush
		super 1
	END
	for command in stat list 'find --last' tail; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr -0 lwlog $command log
		[ "$stderr" = "lwlog: $note" ]
	done
	run --separate-stderr -0 lwlog stat --json log
	[ "$(jq -r .note <<< "$output")" = "$note" ]
	run -0 lwlog check log
	[ "${lines[0]}" = "note: $note" ]
	run --separate-stderr -0 lwlog check --json log
	[ "$stderr" = "lwlog: $note" ]
	[ "$(jq -r .note <<< "$output")" = "$note" ]
}

@test "list: columns" {
	run --separate-stderr -0 lwlog list log
	[ -z "$stderr" ]
	diff - <(echo "$output") <<- END
		    ENTRY        OFFSET      SECTOR  SECTORS        FLAGS MARK
		        0           512           0        0         MARK begin
		        1          1024           0        8         NONE
		        2          5632          16        8 FUA|METADATA
		        3         10240           0        0        FLUSH
		        4         10752        2048     2048      DISCARD
		        5         11264           0        0         MARK ack:1
		        6         11776           1        1     METADATA
		        7         12800           0        0    FLUSH|FUA
		        8         13312           0        0         MARK ack:2
		        9         13824           0        0         MARK dm-log-writes-end
	END
}

@test "list: one JSON object a line" {
	run --separate-stderr -0 lwlog list --json log
	[ -z "$stderr" ]
	[ "${#lines[@]}" -eq 10 ]
	[ "${lines[2]}" = '{"entry":2,"offset":5632,"sector":16,"sectors":8,"flags":"FUA|METADATA"}' ]
	[ "${lines[5]}" = '{"entry":5,"offset":11264,"sector":0,"sectors":0,"flags":"MARK","mark":"ack:1"}' ]
	jq -e -s 'length == 10' <<< "$output"
}

@test "list: sectors are the log's" {
	mklog log <<- END
		sector 4096
		write 8192 8192
	END
	run -0 lwlog list --json log
	[ "$output" = '{"entry":0,"offset":4096,"sector":2,"sectors":2,"flags":"NONE"}' ]
}

@test "list: what of a mark is not printable" {
	mklog log <<- 'END'
		mark a\x01\x7f\xffb \c"
		mark
	END
	run -0 lwlog list log
	[ "${lines[1]}" = '        0           512           0        0         MARK a\x01\x7f\xffb \x5cc"' ]
	run -0 lwlog list --json log
	[ "$(jq -r .mark <<< "${lines[0]}")" = 'a\x01\x7f\xffb \x5cc"' ]
	[ "$(jq .mark <<< "${lines[1]}")" = '""' ]
}

@test "list: nothing of an empty log" {
	mklog log < /dev/null
	run -0 lwlog list log
	[ -z "$output" ]
	run -0 lwlog list --from end log
	[ -z "$output" ]
	lwlog_fails 1 'log: no entry 0, the log has 0' list --from 0 log
}

@test "filters: points" {
	selects "0 1 2 3 4 5 6 7 8 9"
	selects "0 1 2 3 4 5 6 7 8 9" --from start --to end
	selects "7 8 9" --from 7
	selects "0 1" --to 1
	selects "2 3" --from 2 --to 3
	selects "3" --from 3 --to 3
	selects "0" --to start
	selects "9" --from end
	selects "9" --from end --to 9
	selects "5 6 7 8" --from mark:ack:1 --to mark:ack:2
	selects "0" --from mark:begin --to mark:begin
}

@test "filters: points that the log does not have" {
	local index

	lwlog index --index index log > index.out
	for index in '' --index=index; do
		lwlog_fails 1 "log: no entry 10, the log has 10" \
			find $index --from 10 log
		lwlog_fails 1 "log: no mark 'ack' in 10 entries" \
			find $index --from mark:ack log
		lwlog_fails 1 "log: no entry 99, the log has 10" \
			find $index --last --to 99 log
		lwlog_fails 2 "log: --to is before --from" \
			find $index --from 4 --to 3 log
		lwlog_fails 2 "log: --to is before --from" \
			find $index --from end --to start log
		lwlog_fails 2 "log: --to is before --from" \
			find $index --from mark:ack:2 --to mark:ack:1 log
	done
	lwlog_fails 1 "log: no entry 10, the log has 10" list --from 10 log
	lwlog_fails 2 "log: --to is before --from" list --from 4 --to 3 log
	# what is before a --to that does not come is listed
	run --separate-stderr -1 lwlog list --json --from 9 --to mark:none log
	[ "$(jq .entry <<< "$output")" = 9 ]
	[ "$stderr" = "lwlog: log: no mark 'none' in 10 entries" ]
}

@test "filters: flags" {
	selects "3 7" --flags flush
	selects "2 7" --flags fua
	selects "2 3 7" --flags fua,flush
	selects "4" --flags discard
	selects "0 5 8 9" --flags mark
	selects "2 6" --flags metadata
	selects "1 6" --flags write
	selects "1 3 6 7" --flags write,flush
	selects "1 4 6" --flags write --flags discard
}

@test "filters: marks" {
	selects "5" --mark ack:1
	selects "5 8" --mark 'ack:*'
	selects "8" --mark 'ack:[2-9]'
	selects "0 5 8 9" --mark '*'
	selects "8" --mark 'ack\:2'
	selects "9" --mark dm-log-writes-end
	selects_none --mark ack
	selects_none --mark ''
	selects_none --mark '?ck'
}

@test "filters: sectors" {
	selects "1 6" --sectors 0-15
	selects "1" --sectors 7
	selects "1 6" --sectors 1-1
	selects "2" --sectors 8-16
	selects "2" --sectors 23
	selects "2 4" --sectors 23-2048
	selects "4" --sectors 4095
	selects_none --sectors 8-15
	selects_none --sectors 4096-18446744073709551615
}

@test "filters: all of them must fit" {
	selects "8" --from 6 --mark 'ack:*'
	selects "7" --flags flush --from 4
	selects "3" --flags flush --to 4
	selects "6" --flags metadata --sectors 0-15
	selects_none --flags flush --mark 'ack:*'
	selects_none --to 4 --mark ack:1
}

@test "list: --limit" {
	[ "$(numbers --limit 2 log)" = "0 1" ]
	[ "$(numbers --limit 1 --flags fua log)" = "2" ]
	[ "$(numbers --limit 99 log)" = "0 1 2 3 4 5 6 7 8 9" ]
	[ -z "$(numbers --limit 0 log)" ]
	# what is behind them is not read
	mklog log <<- END
		flush
		header 0 0 0x100 0
	END
	run -0 lwlog list --limit 1 log
}

@test "find: text, JSON, and --entry" {
	run --separate-stderr -0 lwlog find --mark ack:2 log
	[ -z "$stderr" ]
	[ "${#lines[@]}" -eq 2 ]
	[[ ${lines[0]} == *ENTRY*MARK ]]
	[ "${lines[1]}" = '        8         13312           0        0         MARK ack:2' ]
	run -0 lwlog find --json --mark ack:2 log
	[ "$output" = '{"entry":8,"offset":13312,"sector":0,"sectors":0,"flags":"MARK","mark":"ack:2"}' ]
	[ "$(lwlog find --json --entry 4 log | jq .entry)" = 4 ]
	lwlog index --index index log > index.out
	[ "$(lwlog find --json --index index --entry 4 log | jq .entry)" = 4 ]
	lwlog_fails 1 'log: no entry 10, the log has 10' find --entry 10 log
	lwlog_fails 1 'log: no entry 10, the log has 10' \
		find --index index --entry 10 log
}

@test "find: a log at fault" {
	local index

	mklog log <<- END
		mark one
		flush
		header 0 0 0x100 0
		mark two
	END
	run --separate-stderr -1 lwlog index log
	for index in there none; do
		[ "$index" = there ] || lwlog index --drop log
		# nothing behind the first is asked for
		run --separate-stderr -0 lwlog find --json --flags flush log
		[ "$(jq .entry <<< "$output")" = 1 ]
		[ -z "$stderr" ]
		run --separate-stderr -1 lwlog find --json --last log
		[ "$(jq .entry <<< "$output")" = 1 ]
		[[ $stderr == 'lwlog: log: entry 2 at byte 1536: flags 0x100, '* ]]
		lwlog_fails 1 'log: entry 2 at byte 1536: flags 0x100, *' \
			find --mark two log
		lwlog_fails 1 'log: entry 2 at byte 1536: flags 0x100, *' \
			find --entry 3 log
		lwlog_fails 1 '*log: entry 2 at byte 1536: flags 0x100, *' \
			find --from mark:two log
		lwlog_fails 1 'log: entry 2 at byte 1536: flags 0x100, *' \
			find --from end log
		run --separate-stderr -0 lwlog find --to 1 --last log
		[[ $output == *FLUSH ]]
	done
}

# Byte $2 of file $1 is another one
damage()
{
	local byte

	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	printf "\\x$(printf %02x $((byte ^ 255)))" |
		dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

@test "find: a damaged index is built anew" {
	local good at

	lwlog index log > index.out
	good=$(md5sum < log.lwindex)
	# magic, head, entry 8, mark, undo
	for at in 0 20 1500; do
		damage log.lwindex "$at"
		run --separate-stderr -0 lwlog find --json --flags flush log
		[ "$(jq .entry <<< "$output")" = 3 ]
		[[ $stderr == 'lwlog: log.lwindex: built anew: '* ]]
		[ "$(md5sum < log.lwindex)" = "$good" ]
		run --separate-stderr -0 lwlog find --flags flush log
		[ -z "$stderr" ]
	done
	truncate -s 1000 log.lwindex
	run --separate-stderr -0 lwlog find --json --mark ack:2 log
	[ "$(jq .entry <<< "$output")" = 8 ]
	[[ $stderr == 'lwlog: log.lwindex: built anew: '* ]]
	: > log.lwindex
	run --separate-stderr -0 lwlog find --json --mark ack:2 log
	[[ $stderr == 'lwlog: log.lwindex: built anew: 0 bytes, expected '* ]]
	[ "$(md5sum < log.lwindex)" = "$good" ]
}

@test "find: a mark is found without the rest of the index" {
	local size entries

	lwlog index log > index.out
	size=$(stat -c %s log.lwindex)
	# what writes went over is at its end
	damage log.lwindex $((size - 1))
	run --separate-stderr -0 lwlog find --json --mark ack:1 log
	[ "$(jq .entry <<< "$output")" = 5 ]
	[ -z "$stderr" ]
	# an entry that it is not looked for at: 1 of 10, of 32 bytes each
	entries=$(($(grep -obUaP '\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x05\x00\x00\x00' \
		log.lwindex | cut -d : -f 1)))
	damage log.lwindex $((entries + 5 * 32 + 28))
	run --separate-stderr -0 lwlog find --json --mark ack:2 log
	[ "$(jq .entry <<< "$output")" = 8 ]
	[ -z "$stderr" ]
	# that very one is found to be damaged, and all of it is built anew
	run --separate-stderr -0 lwlog find --json --mark ack:1 log
	[ "$(jq .entry <<< "$output")" = 5 ]
	[[ $stderr == 'lwlog: log.lwindex: built anew: damaged at byte '* ]]
	run --separate-stderr -0 lwlog find --json --mark ack:1 log
	[ -z "$stderr" ]
}

@test "find: a stale index is built anew" {
	lwlog index log > index.out
	mklog log <<- END
		flush
		mark ack:2
	END
	run --separate-stderr -0 lwlog find --json --mark ack:2 log
	[ "$(jq .entry <<< "$output")" = 1 ]
	[[ $stderr == 'lwlog: log.lwindex: built anew: '* ]]
	run --separate-stderr -0 lwlog find --json --mark ack:2 log
	[ "$(jq .entry <<< "$output")" = 1 ]
	[ -z "$stderr" ]
	lwlog_fails 1 'log: none of 2 entries is like that' find --mark ack:1 log
}

@test "find: --index" {
	lwlog_fails 2 'none: cannot open the index: No such file or directory; lwlog index makes it' \
		find --index none --mark ack:2 log
	[ ! -e none ]
	# what is no index stays what it is
	cp log other
	run --separate-stderr -0 lwlog find --index other --json --mark ack:2 log
	[ "$(jq .entry <<< "$output")" = 8 ]
	[ "$stderr" = 'lwlog: other: holds something else than an index, and is left alone' ]
	cmp log other
	# and one is not used where the log is salvaged
	lwlog index log > index.out
	damage log.lwindex 0
	run --separate-stderr -0 lwlog find --salvage --mark ack:2 log
	[ -z "$stderr" ]
}

@test "find: an index that cannot be kept is of use nevertheless" {
	lwlog index log > index.out
	damage log.lwindex 20
	# too long a name for the one that is to replace it
	mv log.lwindex "$(printf %0252d 0)"
	run --separate-stderr -0 lwlog find --json --index "$(printf %0252d 0)" \
		--mark ack:2 log
	[ "$(jq .entry <<< "$output")" = 8 ]
	[[ $stderr == "lwlog: 0"*": cannot create: File name too long" ]]
}

@test "tail: the last entries" {
	local i

	[ "$(lwlog tail --json -n 3 log | jq -s -c '[.[].entry]')" = "[7,8,9]" ]
	[ "$(lwlog tail --json --lines 1 log | jq -s -c '[.[].entry]')" = "[9]" ]
	run -0 lwlog tail -n 1 log
	[ "${lines[1]}" = '        9         13824           0        0         MARK dm-log-writes-end' ]
	[ "$(lwlog tail --json -n 99 log | jq -s -c '[.[].entry]')" = \
	  "[0,1,2,3,4,5,6,7,8,9]" ]
	run -0 lwlog tail -n 0 log
	[ -z "$output" ]
	for ((i = 0; i < 200; i++)); do
		echo "mark $i"
	done | mklog log
	[ "$(lwlog tail --json log | jq -s -c '[.[].mark | tonumber]')" = \
	  "[190,191,192,193,194,195,196,197,198,199]" ]
	[ "$(lwlog tail --json -n 150 log | jq -s -c '[.[].entry] | [first, last, length]')" = \
	  "[50,199,150]" ]
	mklog log < /dev/null
	run --separate-stderr -0 lwlog tail log
	[ -z "$output$stderr" ]
}

# Wait until the command is true: 10 s at most
wait_for()
{
	local i

	for ((i = 0; i < 100; i++)); do
		"$@" && return
		sleep 0.1
	done
	return 1
}

# The background process does, with that status
ends_with()
{
	local status=0

	wait $! || status=$?
	[ "$status" -eq "$1" ]
}

has_lines()
{
	[ "$(wc -l < "$1")" -eq "$2" ]
}

@test "tail -f: as the log grows, to its end" {
	printf 'flush\nmark one\n' > words
	mklog log < words
	"$built/bin/lwlog" tail -f --json log > out 3>&- &
	wait_for has_lines out 2
	echo 'write 0 65536 fua' >> words
	mklog log < words
	wait_for has_lines out 3
	# data that is there, but not counted yet
	{ cat words; printf 'write 0 512\nsuper 3\n'; } > words.more
	mklog log < words.more
	printf 'write 0 512\nmark dm-log-writes-end\n' >> words
	sleep 0.5
	has_lines out 3
	mklog log < words
	wait $!
	[ "$(jq -s -c '[.[].entry]' out)" = "[0,1,2,3,4]" ]
	# and if it has ended before
	run -0 timeout 10 "$built/bin/lwlog" tail -n 1 --follow --json log
	[ "$(jq .entry <<< "$output")" = 4 ]
	run -0 timeout 10 "$built/bin/lwlog" tail -n 0 -f log
	[ -z "$output" ]
}

@test "tail -f: interrupted is 0" {
	local signal

	printf 'flush\nmark one\n' | mklog log
	for signal in INT TERM; do
		run --separate-stderr -0 timeout --preserve-status -s "$signal" 0.5 \
			"$built/bin/lwlog" tail -f --json -n 1 log
		[ "$(jq .mark <<< "$output")" = '"one"' ]
		[ -z "$stderr" ]
	done
	# nothing of what is not counted, even so
	printf 'flush\nmark one\nflush\nsuper 2\n' | mklog log
	run -0 timeout --preserve-status 0.5 "$built/bin/lwlog" tail -f --json log
	[ "${#lines[@]}" -eq 2 ]
}

@test "tail -f: a log without a superblock is waited for" {
	local no_super

	for no_super in empty zeros; do
		: > log
		[ "$no_super" = empty ] || head -c 8192 /dev/zero > log
		"$built/bin/lwlog" tail -f --json log > out 2> err 3>&- &
		wait_for has_lines err 1
		[ "$(< err)" = 'lwlog: log: no superblock yet: waiting for it' ]
		printf 'mark one\nmark dm-log-writes-end\n' | mklog log
		wait $!
		[ "$(jq -s -c '[.[].entry]' out)" = "[0,1]" ]
	done
	# also in vain
	head -c 8192 /dev/zero > log
	run --separate-stderr -0 timeout --preserve-status 0.5 \
		"$built/bin/lwlog" tail -f log
	[ -z "$output" ]
	lwlog_fails 2 'none: cannot open the log: *' tail -f none
}

@test "tail -f: a log at fault, or written anew" {
	printf 'flush\nmark one\n' | mklog log
	"$built/bin/lwlog" tail -f log > out 2> err 3>&- &
	wait_for has_lines out 3
	printf 'mark one\n' | mklog log
	ends_with 1
	[ "$(< err)" = 'lwlog: log: it was written anew: the superblock counts 1 entries, 2 were read' ]

	printf 'flush\nmark one\n' | mklog log
	"$built/bin/lwlog" tail -f log > out 2> err 3>&- &
	wait_for has_lines out 3
	printf 'flush\nmark one\nheader 0 0 0x100 0\n' | mklog log
	ends_with 1
	[[ $(< err) == 'lwlog: log: entry 2 at byte 1536: flags 0x100, '* ]]
}

@test "tail -f: it ends when nobody reads any more" {
	printf 'flush\nmark one\n' | mklog log
	run -0 bash -c 'timeout 10 "$0" tail -f log | head -n 1
		[ "${PIPESTATUS[0]}" -eq 141 ]' "$built/bin/lwlog"
}

@test "tail -f: what cannot grow" {
	lwlog convert log log.zst > /dev/null
	lwlog_fails 2 'log.zst: a packed log does not grow; *' tail -f log.zst
	lwlog_fails 2 '--follow and --salvage: one of them' tail -f --salvage log
}

@test "convert: there and back" {
	local options

	for options in '' '--level 19' '--frame 1' '--frame 8 --level 1'; do
		# shellcheck disable=SC2086 # words
		lwlog convert $options log log.zst
		lwlog convert log.zst log.back
		cmp log log.back
		zstd -q -t log.zst
		zstd -q -d -c log.zst | cmp - log
		diff <(lwlog list log) <(lwlog list log.zst)
		rm log.zst log.back
	done
	lwlog convert log log.copy
	cmp log log.copy
	lwlog convert log log.zst
	lwlog convert --frame 2 log.zst again.zst
	zstd -q -d -c again.zst | cmp - log
	files_are again.zst build log log.copy log.zst
}

@test "convert: a log of many frames" {
	local i

	for ((i = 0; i < 300; i++)); do
		echo "write $((i * 4096)) $((i % 7 * 4096 + 512))"
		echo "flush"
		echo "mark $i"
	done | mklog log
	lwlog convert --frame 64 log log.zst
	zstd -q -t log.zst
	zstd -q -d -c log.zst | cmp - log
	diff <(lwlog list --json log) <(lwlog list --json log.zst)
	[ "$(lwlog find --mark 299 log.zst)" = "$(lwlog find --mark 299 log)" ]
	[ "$(lwlog stat --json log.zst)" = "$(lwlog stat --json log)" ]
	lwlog index log.zst > index.out
	[ "$(lwlog find --mark 299 log.zst)" = "$(lwlog find --mark 299 log)" ]
}

@test "convert: what it prints" {
	run --separate-stderr -0 lwlog convert log a.zst
	[ "$output" = "a.zst: 14336 bytes in $(stat -c %s a.zst)" ]
	[ -z "$stderr" ]
	run --separate-stderr -0 lwlog convert a.zst b
	[ "$output" = "b: 14336 bytes" ]
	run --separate-stderr -0 lwlog convert --json log c.zst
	[ "$(jq -c '[.copy, .entries, .bytes, .written, .left_out]' <<< "$output")" = \
	  "[\"c.zst\",10,14336,$(stat -c %s c.zst),0]" ]
	jq -e '.seconds >= 0' <<< "$output"
	run --separate-stderr -0 lwlog convert --json --whole log d
	[ "$(jq -c '[.copy, .entries, .bytes, .written]' <<< "$output")" = \
	  '["d",null,14336,14336]' ]
}

@test "convert: zeros become holes" {
	mklog log <<- END
		write 0 8388608 fill 0
		write 0 4096
		mark dm-log-writes-end
	END
	run -0 lwlog convert log log.copy
	cmp log log.copy
	[ "$(($(stat -c '%b * %B' log)))" -gt 8388608 ]
	[ "$(($(stat -c '%b * %B' log.copy)))" -lt 65536 ]
	lwlog convert log.copy log.zst
	lwlog convert log.zst log.again
	cmp log log.again
	[ "$(($(stat -c '%b * %B' log.again)))" -lt 65536 ]
	# also where the file ends with one
	truncate -s 64M log
	run -0 lwlog convert --whole log log.whole
	cmp log log.whole
	[ "$(($(stat -c '%b * %B' log.whole)))" -lt 65536 ]
}

@test "convert: only the used part" {
	truncate -s 1M log
	run --separate-stderr -0 lwlog convert log a
	[ -z "$stderr" ]
	[ "$(stat -c %s a)" -eq 14336 ]
	cmp -n 14336 log a
	printf x | dd of=log bs=1 seek=1000000 conv=notrunc status=none
	run --separate-stderr -0 lwlog convert --json log b
	cmp a b
	[ "$stderr" = 'lwlog: log: left out what is behind the entries, 1034240 bytes from byte 14336 on that are not all zero: --whole copies them, too' ]
	[ "$(jq .left_out <<< "$output")" = 1034240 ]
	run --separate-stderr -0 lwlog convert --whole log c.zst
	[ -z "$stderr" ]
	zstd -q -d -c c.zst | cmp - log
	# of a packed one, too
	run --separate-stderr -0 lwlog convert c.zst d
	cmp a d
	[[ $stderr == 'lwlog: c.zst: left out '*', 1034240 bytes '* ]]
}

@test "convert: the note stays true" {
	local note='the superblock counts 1 entries; read 2 more that had not been counted yet'

	printf 'mark one\nwrite 0 512\nflush\nsuper 1\n' | mklog log
	run --separate-stderr -0 lwlog convert log a.zst
	[ "$stderr" = "lwlog: log: $note" ]
	run --separate-stderr -0 lwlog list a.zst
	[ "$stderr" = "lwlog: a.zst: $note" ]
	[ "$(numbers a.zst)" = "0 1 2" ]
	# an older log behind it
	printf 'flush\nmark one\nmark old\nmark old\nsuper 2\n' | mklog log
	run --separate-stderr -0 lwlog convert log b
	[[ $stderr == *"are an older log's, and are not read"*"left out what is behind"* ]]
	[ "$(numbers b)" = "0 1" ]
	# and one that is counted
	printf 'mark dm-log-writes-end\nflush\n' | mklog log
	run --separate-stderr -0 lwlog convert log c
	[ "$(numbers c)" = "0" ]
	run --separate-stderr -0 lwlog list c
	[[ $stderr == "lwlog: c: the superblock counts 2 entries, but entry 0 is the mark dm-log-writes-end"* ]]
}

@test "convert: a log at fault" {
	printf 'flush\nheader 0 0 0x100 0\nflush\n' | mklog log
	lwlog_fails 1 'log: entry 1 at byte 1024: flags 0x100, *; --whole copies the log as it is' \
		convert log a.zst
	[ ! -e a.zst ]
	run --separate-stderr -0 lwlog convert --whole log a.zst
	[ -z "$stderr" ]
	zstd -q -d -c a.zst | cmp - log
	run --separate-stderr -0 lwlog convert --salvage log b
	[[ $stderr == *': salvaged the 1 entries before it, left out 2'* ]]
	run --separate-stderr -0 lwlog list --salvage --json b
	[ "${#lines[@]}" -eq 1 ]
}

@test "convert: what is in the way" {
	: > there
	lwlog_fails 2 'there: exists already' convert log there
	[ ! -s there ]
	ln -s nowhere link.zst
	lwlog_fails 2 'link.zst: exists already' convert log link.zst
	lwlog_fails 2 'log: exists already' convert log log
	lwlog_fails 1 'none/out.*: cannot create: No such file or directory' \
		convert log none/out
	lwlog_fails 2 '--level: a.zs is not packed: its name does not end in .zst' \
		convert --level 3 log a.zs
	lwlog_fails 2 '--frame: .zst is not packed: *' convert --frame 1 log .zst
}

@test "convert: a failed write leaves nothing" {
	local out

	printf 'write 0 1048576\nmark dm-log-writes-end\n' | mklog log
	head -c 1048576 /dev/urandom |
		dd of=log bs=1024 seek=1 conv=notrunc status=none
	for out in out out.zst; do
		run --separate-stderr -1 bash -c "trap '' XFSZ; ulimit -f 64
			exec \"\$0\" convert log $out" "$built/bin/lwlog"
		[[ $stderr == "lwlog: $out."*": cannot write: File too large" ]]
		files_are build log
	done
}

@test "convert: an interrupt leaves nothing" {
	local unfinished

	truncate -s 40G log
	"$built/bin/lwlog" convert --whole --level 19 log out.zst 3>&- &
	wait_for test -e "out.zst.$!"
	kill "$!"
	ends_with 143
	files_are build log
}

@test "a truncated .zst" {
	local size

	lwlog convert log log.zst > /dev/null
	size=$(stat -c %s log.zst)
	for command in stat list find tail check; do
		cp log.zst cut.zst
		truncate -s $((size - 1)) cut.zst
		lwlog_fails 2 'cut.zst: not seekable, or cut short: *' \
			"$command" cut.zst
		truncate -s $((size / 2)) cut.zst
		lwlog_fails 2 'cut.zst: not seekable, or cut short: *' \
			"$command" cut.zst
	done
	lwlog_fails 2 'cut.zst: not seekable, or cut short: *' convert cut.zst out
	# without a seek table it is zstd, but not of use
	zstd -q log -o plain.zst
	lwlog_fails 2 'plain.zst: not seekable, or cut short: *: unpack it with zstd -d, or pack it with lwlog convert' \
		list plain.zst
}

@test "check: nothing wrong" {
	run --separate-stderr -0 lwlog check log
	[ "$output" = "log: 10 entries up to byte 14336, 0 faults, 0 notes" ]
	[ -z "$stderr" ]
	run --separate-stderr -0 lwlog check --json log
	[ "$(jq -c . <<< "$output")" = '{"entries":10,"end":14336,"clean_end":true,"note":null,"faults":[],"notes":[]}' ]
}

@test "check: notes are no faults" {
	local mark

	mklog log <<< 'flush'
	run -0 lwlog check log
	[ "${#lines[@]}" -eq 2 ]
	[[ ${lines[0]} == "note: log: the last entry is not the mark dm-log-writes-end: "* ]]
	[ "${lines[1]}" = "log: 1 entries up to byte 1024, 0 faults, 1 notes" ]

	# 512 - 33 is the kernel's longest
	mark=$(printf %479s x)
	printf 'mark %s\nmark dm-log-writes-end\n' "$mark" | mklog log
	run -0 lwlog check log
	[ "${#lines[@]}" -eq 1 ]
	printf 'mark %s\nmark dm-log-writes-end\n' "x$mark" | mklog log
	run -0 lwlog check log
	[ "${lines[0]}" = "note: log: entry 0 at byte 512: a mark of 480 bytes, the kernel writes 479 at most" ]
	[ "${#lines[@]}" -eq 2 ]
	printf 'flush\nmark %s\nmark %s\nmark dm-log-writes-end\nsuper 9\n' \
		"x$mark" "x$mark" | mklog log
	run -0 lwlog check log
	[[ ${lines[0]} == "note: log: the superblock counts 9 entries, but entry 3 is the mark "* ]]
	[[ ${lines[1]} == "note: log: entry 1 at byte 1024: a mark of 480 bytes, "*", and others are too long, too" ]]
	[ "${lines[2]}" = "log: 4 entries up to byte 2560, 0 faults, 2 notes" ]
	run --separate-stderr -0 lwlog check --json log
	[ "$(jq -c '[.clean_end, (.notes | length), .note[:4]]' <<< "$output")" = \
	  '[true,2,"log:"]' ]
}

@test "check: a fault, and where entries go on" {
	mklog log <<- END
		flush
		header 0 0 0x100 0
		write 0 1024
		flush
		mark dm-log-writes-end
	END
	run --separate-stderr -1 lwlog check log
	[ "${lines[0]}" = "fault: log: entry 1 at byte 1024: flags 0x100, expected none but FLUSH, FUA, DISCARD, MARK and METADATA" ]
	[ "${lines[1]}" = "  entries go on at byte 1536: 3 up to byte 4096" ]
	[ "${lines[2]}" = "log: 4 entries up to byte 4096, 1 faults, 0 notes" ]
	[ "${#lines[@]}" -eq 3 ]
	[ -z "$stderr" ]
	run --separate-stderr -1 lwlog check --json log
	[ "$(jq -c '.faults[0] | [.entry, .offset, .message[:14], .goes_on, .entries]' \
	     <<< "$output")" = '[1,1024,"log: entry 1 a",1536,3]' ]
	[ "$(jq -c '[.entries, .end, .clean_end]' <<< "$output")" = \
	  '[4,4096,true]' ]
}

@test "check: every fault is told" {
	mklog log <<- END
		flush
		raw 00000000000000000000000000000000ff
		zero 495
		flush
		flush
		flush
		write 0 512
		header 0 0 8 600
		write 512 8192 fua
		flush
		flush
		zero 4096
	END
	run --separate-stderr -1 lwlog check log
	echo "$output"
	[[ ${lines[0]} == "fault: log: entry 1 at byte 1024: flags FLUSH|FUA|DISCARD|MARK|METADATA|0xe0, "* ]]
	[ "${lines[1]}" = "  entries go on at byte 1536: 4 up to byte 4096" ]
	[[ ${lines[2]} == "fault: log: entry 6 at byte 4096: a mark of 600 bytes, expected at most 480" ]]
	[ "${lines[3]}" = "  entries go on at byte 4608: 3 up to byte 14336" ]
	[[ ${lines[4]} == "note: log: the last entry is not the mark "* ]]
	[ "${lines[5]}" = "log: 8 entries up to byte 14336, 2 faults, 1 notes" ]
	run --separate-stderr -1 lwlog check --json log
	[ "$(jq -c '[.faults[] | [.entry, .offset, .goes_on, .entries]]' \
	     <<< "$output")" = '[[1,1024,1536,4],[6,4096,4608,3]]' ]
}

@test "check: nothing behind a fault" {
	# two are too few to be no coincidence, unless the end mark is one
	printf 'flush\nzero 512\nflush\nflush\nsuper 3\n' | mklog log
	run -1 lwlog check log
	[[ ${lines[0]} == "fault: log: entry 1 at byte 1024: neither data nor flags, expected an entry, one of 3" ]]
	[ "${lines[1]}" = "  no entries are found behind it" ]
	run -1 lwlog check --json log
	[ "$(jq -c '.faults[0] | [.goes_on, .entries]' <<< "$output")" = '[null,0]' ]
	printf 'flush\nzero 512\nflush\nmark dm-log-writes-end\nsuper 3\n' | mklog log
	run -1 lwlog check log
	[ "${lines[1]}" = "  entries go on at byte 1536: 2 up to byte 2560" ]

	printf 'flush\nwrite 0 4096\ncut 1\n' | mklog log
	run -1 lwlog check log
	[[ ${lines[0]} == "fault: log: truncated: entry 1 at byte 1024 has 4096 bytes of data, expected them before the log's end at 5631" ]]
	[ "${lines[1]}" = "  no entries are found behind it" ]
	printf 'flush\nsuper 2\n' | mklog log
	run -1 lwlog check log
	[[ ${lines[0]} == "fault: log: truncated: entry 1 of 2 at byte 1024, expected a header of 512 bytes before the log's end at 1024" ]]
	[ "${lines[1]}" = "  no entries are found behind it" ]
	printf 'flush\nflush\ncut 100\n' | mklog log
	run -1 lwlog check log
	[[ ${lines[0]} == "fault: log: truncated: entry 1 of 2 at byte 1024, "* ]]
	[ "${lines[1]}" = "  no entries are found behind it" ]
}

@test "check: --salvage is for a missing superblock" {
	printf 'flush\nflush\nsuper none\n' | mklog log
	run --separate-stderr -0 lwlog check --salvage log
	[ "${lines[0]}" = "note: log: no superblock: salvaged by the first entry at byte 512" ]
	printf 'flush\nheader 0 0 0x100 0\n' | mklog log
	run --separate-stderr -1 lwlog check --salvage log
	[[ ${lines[0]} == "fault: "* ]]
}

@test "check: a name that JSON cannot have" {
	printf 'flush\nheader 0 0 0x100 0\n' | mklog $'a\xff'
	run -1 lwlog check --json $'a\xff'
	[[ $(jq -r '.faults[0].message' <<< "$output") == 'a\xff: entry 1 '* ]]
}

@test "check: a packed log that is damaged in its data" {
	local i

	for ((i = 0; i < 8; i++)); do
		echo "write 0 65536"
		echo "mark $i"
	done > words
	echo 'mark dm-log-writes-end' >> words
	mklog log < words
	lwlog convert --frame 64 log log.zst > /dev/null
	run -0 lwlog check log.zst
	damage log.zst $(($(stat -c %s log.zst) / 3))
	run -1 lwlog check log.zst
	[[ ${lines[0]} == "fault: log.zst: frame "* ]]
	[[ $output == *"  entries go on at byte "* ]]
}

@test "index: keeps one" {
	run --separate-stderr -0 lwlog index log
	[[ $output =~ ^log\.lwindex:\ 10\ entries,\ 4\ marks,\ ([0-9]+)\ bytes,\ [0-9.]+\ s$ ]]
	[ "${BASH_REMATCH[1]}" = "$(stat -c %s log.lwindex)" ]
	[ -z "$stderr" ]
	run --separate-stderr -0 lwlog index --json --index other log
	[ "$(jq -c '[.index, .entries, .marks, .bytes]' <<< "$output")" = \
	  "[\"other\",10,4,$(stat -c %s other)]" ]
	cmp log.lwindex other
	# over an old one
	run -0 lwlog index log
	cmp log.lwindex other
	files_are build log log.lwindex other
}

@test "index: --drop" {
	lwlog_fails 1 'log.lwindex: there is no index' index --drop log
	lwlog index log > index.out
	run --separate-stderr -0 lwlog index --drop log
	[ -z "$output$stderr" ]
	[ ! -e log.lwindex ]
	lwlog index --index other log > index.out
	run --separate-stderr -0 lwlog index --drop --index other log
	[ ! -e other ]
}

@test "index: what it refuses" {
	echo precious > file
	lwlog_fails 2 'file: not an index, and left alone' index --index file log
	lwlog_fails 2 'file: not an index, and left alone' \
		index --drop --index file log
	[ "$(< file)" = precious ]
	lwlog_fails 2 '--salvage: an index is of the whole log' \
		index --salvage log
	lwlog_fails 1 'none/index.*: cannot create: No such file or directory' \
		index --index none/index log
}

@test "index: of a log at fault" {
	printf 'mark one\nheader 0 0 0x100 0\n' | mklog log
	run --separate-stderr -1 lwlog index log
	[[ $output == "log.lwindex: 1 entries, 1 marks, "* ]]
	[[ $stderr == "lwlog: log: entry 1 at byte 1024: flags 0x100, "* ]]
	run -0 lwlog find --mark one log
}

@test "a full disk is no success" {
	local command

	for command in stat list 'list --json' 'find --last' tail check \
		       'stat --json' 'check --json' index --help \
		       'tail --help'; do
		# shellcheck disable=SC2086 # words
		run -1 bash -c '"$@" > /dev/full' - "$built/bin/lwlog" $command log
		[ "$output" = "lwlog: cannot write to stdout: No space left on device" ]
	done
	# nor the rest of a long log
	seq -f 'mark %g' 20000 | mklog log
	run -1 bash -c '"$@" > /dev/full' - "$built/bin/lwlog" list log
	[ "$output" = "lwlog: cannot write to stdout: No space left on device" ]
}

@test "a pipe that nobody reads ends it" {
	seq -f 'mark %g' 20000 | mklog log
	run -0 bash -c '"$0" list log | head -n 1
		[ "${PIPESTATUS[0]}" -eq 141 ]' "$built/bin/lwlog"
	[ "${#lines[@]}" -eq 1 ]
}

@test "a block device, and what is written below its cache" {
	printf 'flush\nmark one\n' > words
	mklog log < words
	truncate -s 1M log
	device=$(losetup -f --show log) || skip "no loop device can be set up"
	run --separate-stderr -0 lwlog stat --json "$device"
	[ "$(jq -c '[.size, .entries]' <<< "$output")" = '[1048576,2]' ]
	lwlog_fails 2 "$device: a device has no file beside it: name one with --index" \
		index "$device"
	lwlog index --index index "$device" > index.out
	run --separate-stderr -0 lwlog find --index index --json --mark one "$device"
	[[ $output == '{"entry":1,'* ]]
	[ -z "$stderr" ]
	lwlog convert "$device" copy
	cmp -n 1536 log copy
	[ "$(stat -c %s copy)" -eq 1536 ]

	"$built/bin/lwlog" tail -f --json "$device" > out 3>&- &
	wait_for has_lines out 2
	printf 'write 0 512\nmark dm-log-writes-end\n' >> words
	mklog more < words
	dd if=more of=log bs=512 skip=1 seek=1 conv=notrunc status=none
	dd if=more of=log bs=512 count=1 conv=notrunc status=none
	wait $!
	[ "$(entries < out)" = "0 1 2 3" ]
}

@test "a capture's log" {
	"$built/tests/shell/mkcapture" capture
	run -0 lwlog stat --json capture/log
	[ "$(jq -c '[.entries, .marks, .flushes, .writes]' <<< "$output")" = \
	  '[32,12,10,10]' ]
	run -0 lwlog find --json --last --mark 'ack:*' capture/log
	[[ $(jq -r .mark <<< "$output") == ack:*:1:4 ]]
}
