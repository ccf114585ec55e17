#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards what the ackproof command says to a mistake: status 2 and one line
# that names what is wrong, before anything is built or written.

load lib

setup()
{
	own_folder
}

# Whatever was refused must have left nothing
teardown()
{
	local left

	left=$(find . -path "./jobs/*" -o -path "./results/*" -o -path "./build/kernel/*")
	[ -z "$left" ] || echo "left: $left"
	[ -z "$left" ]
}

mkcapture()
{
	"$built/tests/shell/mkcapture" "$@"
}

see="; see 'ackproof"

@test "--version and --help are for stdout" {
	run --separate-stderr -0 ackproof --version
	[[ $output =~ ^ackproof\ [0-9.]+$ ]]
	[ -z "$stderr" ]
	run --separate-stderr -0 ackproof --help
	[ "${lines[0]}" = "Usage: ackproof [-q] COMMAND [ARG]..." ]
	[ -z "$stderr" ]
}

@test "every command has a line in the help, and help of its own" {
	local command help

	help=$(ackproof --help)
	for command in "$top"/harness/cmd/*; do
		command=${command##*/}
		[[ $help =~ $'\n'"  $command "\ +[a-z] ]]
		run --separate-stderr -0 ackproof "$command" --help
		[[ ${lines[0]} == "Usage: ackproof $command"* ]]
		[[ $output == *"Exit status: 0"* ]]
		[ -z "$stderr" ]
		run --separate-stderr -0 ackproof "$command" x -h
		[[ ${lines[0]} == "Usage: ackproof $command"* ]]
	done
}

@test "it runs by a link, and from any folder" {
	ln -s "$top/harness/ackproof" link
	mkdir sub
	cd sub
	run -0 ../link --version
}

@test "without the tools, it says how to build them" {
	unset ACKPROOF_SUPERVISED
	rm build/bin
	fails_with 77 "ackproof: the tools are not built: run 'make' in $top" \
		kernel list
}

@test "no command, or one that there is not" {
	usage_error "expected a command$see --help'"
	usage_error "expected a command$see --help'" -q
	usage_error "unknown command 'none'$see --help'" none
	usage_error "unknown command '../lib/common.sh'$see --help'" ../lib/common.sh
	usage_error "unknown command ''$see --help'" ''
	usage_error "unknown option '--none'$see --help'" --none capture
}

@test "capture: options and folder" {
	usage_error "expected a folder$see capture --help'" capture
	usage_error "one folder only$see capture --help'" capture a b
	usage_error "--none: unknown, or needs an argument$see capture --help'" \
		capture --none
	usage_error "unknown option '--none'$see capture --help'" capture --none a
	usage_error "--seed: unknown, or needs an argument$see capture --help'" \
		capture a --seed
	mkdir old
	usage_error "old exists already" capture old
	[ ! -e a ]
}

@test "capture: numbers out of range, or none" {
	local option values number

	for number in 0 1025 -1 1e3 01 99999999999999999999 '' ' 1'; do
		usage_error "--writers: '$number' is not a number from 1 to 1024" \
			capture --writers "$number" a
	done

	while read -r option values; do
		for number in $values; do
			usage_error "$option: '$number' is not a number from *" \
				capture "$option" "$number" a
		done
	done <<- END
		--seed -1 1e3 9007199254740993
		--fsyncs 0 10000001
		--files 0 1025
		--blocks 0 1048577
		--timeout 0 1000001
		--cpu -1 100001
	END
}

@test "capture: words and pairs" {
	usage_error "--mode: 'random', expected overwrite, append or mixed$see*" \
		capture --mode random a
	usage_error "--sync: '', expected fsync or fdatasync$see*" \
		capture --sync '' a
	usage_error "--delay: '4', expected W,F$see*" capture --delay 4 a
	usage_error "--delay: '' is not a number from 0 to 10000" \
		capture --delay 4, a
	usage_error "--delay: '' is not a number from 0 to 10000" \
		capture --delay ,4 a
	usage_error "--delay: '3,2' is not a number from 0 to 10000" \
		capture --delay 4,3,2 a
	usage_error "--delay: '10001' is not a number from 0 to 10000" \
		capture --delay 10001,0 a
	usage_error "--fsyncs: 3, expected at least one for each of 4 files$see*" \
		capture --fsyncs 3 --files 4 a
}

@test "capture: sizes" {
	local option size

	for option in --data-size --log-disk --log-size; do
		usage_error "$option: '10x' is not a size like 320m" \
			capture "$option" 10x a
	done
	for size in '' 0m m -1m 1.5g 10mm ' 1m' 010m 1000000000g; do
		usage_error "--data-size: '$size' is not a size like 320m" \
			capture --data-size "$size" a
	done
}

@test "sizes in bytes" {
	run -0 bash -c '. "$0/harness/lib/common.sh"
		for size in 1 512k 10m 4g 4G; do bytes size $size; done' "$top"
	[ "$(xargs <<< "$output")" = "1 524288 10485760 4294967296 4294967296" ]
}

@test "an unknown variant: which ones there are" {
	usage_error "unknown variant 'none'; there are: early-snapshot *series*stock-dmfix" \
		capture --variant none a
	usage_error "unknown variant '../variants/stock'; there are: *" \
		kernel build ../variants/stock
}

@test "kernel: verbs and arguments" {
	usage_error "expected list, build or path$see kernel --help'" kernel
	usage_error "unknown verb 'none'$see*" kernel none
	usage_error "list takes no variant$see*" kernel list stock
	usage_error "expected a variant$see*" kernel build
	usage_error "expected one variant$see*" kernel path
	usage_error "expected one variant$see*" kernel path stock series
	usage_error "unknown option '--none'$see*" kernel build --none stock
	usage_error "--jobs needs a number$see*" kernel build --jobs
	usage_error "--jobs: '0' is not a number from 1 to 1024" \
		kernel build -j 0 stock
	usage_error "--patch needs a path$see*" kernel build stock --patch
	usage_error "--patch: 'none' is not a file that can be read" \
		kernel build --patch none stock
	usage_error "--series: 'none' is not a folder" \
		capture --series none a
	usage_error "--source: 'none' is not a kernel source tree that can be read" \
		replay --source none a
}

@test "audit: options and folder" {
	fails_with 2 "lwaudit: expected one capture; see lwaudit --help" audit
	mkcapture a
	fails_with 2 "lwaudit: expected one capture; see lwaudit --help" audit a a
	fails_with 2 "lwaudit: --losses: 'x' is not a number from *" audit -n x a
	fails_with 2 "*lwaudit: unrecognized option '--none'" audit --none a
}

@test "audit: nothing lost is 0, a loss 1" {
	mkcapture a
	run -0 ackproof audit a
	[ "${lines[0]}" = "32 entries, 10 acks, 0 lost" ]
	mkcapture b loss
	run -1 ackproof audit b
	[ "${lines[0]}" = "31 entries, 10 acks, 1 lost (1 stale blocks)" ]
	run -1 ackproof audit --json b
	[ "$(jq -c '[.acks_lost, .by_kind.stale]' <<< "$output")" = "[1,1]" ]
}

@test "replay: options and folder" {
	usage_error "expected a capture$see replay --help'" replay
	usage_error "one capture only$see*" replay a b
	usage_error "unknown option '--none'$see*" replay --none a
	usage_error "--points: unknown, or needs an argument$see*" replay a --points
	usage_error "--jobs: '0' is not a number from 1 to 1024" replay -j 0 a
	usage_error "--timeout: 'x' is not a number from 1 to 1000000" \
		replay --timeout x a
	usage_error "--cpu: '-1' is not a number from 0 to 100000" \
		replay --cpu -1 a
	usage_error "--sample: '1e3' is not a number from 0 to *" \
		replay --sample 1e3 a
	usage_error "none: no such capture" replay none
	mkcapture a
	fails_with 2 "lwpoints: points: 'none', expected ack, *" replay --points 9@none a
	fails_with 2 "lwpoints: *9999*" replay --points 9999 a
	mv a 'a b'
	fails_with 77 "ackproof: '$PWD/a b': blanks, *" replay 'a b'
}

@test "bisect log: options and folder" {
	see="; see 'ackproof bisect --help'"
	usage_error "expected *log*$see" bisect
	usage_error "expected *log*$see" bisect none
	usage_error "expected *log*$see" bisect ../cmd/replay
	usage_error "expected a capture$see" bisect log
	usage_error "one capture only$see" bisect log a b
	usage_error "unknown option '--none'$see" bisect log --none a
	usage_error "--check: unknown, or needs an argument$see" bisect log a --check
	usage_error "--check: expected a check or a command$see" bisect log --check '' a
	usage_error "--budget: '0' is not a number from 1 to *" bisect log -n 0 a
	usage_error "--cpu: 'x' is not a number from 0 to 100000" bisect log --cpu x a
	usage_error "none: no such capture" bisect log none
	mkcapture a
	usage_error "--from: '32' is not a number from 0 to 31" bisect log --from 32 a
	usage_error "--to: '3' is not a number from 4 to 31" bisect log --from 4 --to 3 a
	mv a 'a b'
	fails_with 77 "ackproof: '$PWD/a b': blanks, *" bisect log 'a b'
}

@test "bisect log: a command on the images" {
	mkcapture a
	run --separate-stderr -1 ackproof bisect log \
		--check '[ "${LWREPLAY_POINT#entry }" -lt 20 ]' a
	echo "$output"
	[[ $output == *" states of the entries 0 to 31, "*": 1 bad window"* ]]
	[[ $output == *"first bad: entry 2"* ]]
	[[ ${lines[-1]} == "reproduce: lwreplay --size "*" $PWD/a/log image" ]]
	[ -z "$(ls jobs)" ]
	run -0 ackproof bisect log --json --check true a
	jq -e '.bad == [] and .all_checked' <<< "$output"
	fails_with 77 "lwbisect: entry 0: 'exit 126' gives no verdict: *" \
		bisect log --check 'exit 126' a
	[ -z "$(ls jobs)" ]
}

# Both read the capture with the same code: both must refuse it.
refused()
{
	fails_with "$1" "lwaudit: $2" audit a
	fails_with "$1" "lwpoints: */$2" replay a
	rm -rf a
}

@test "a folder that holds no capture" {
	fails_with 2 "lwaudit: a/capture.json: not a capture: unable to open *" \
		audit a
	mkdir a
	refused 2 "a/capture.json: not a capture: unable to open *"
	mkcapture a
	rm a/log
	refused 2 "a/log: cannot open the log: No such file or directory"
}

@test "a capture.json that is none, of another format, or recording" {
	mkcapture a
	echo 'format = 1' > a/capture.json
	refused 2 "a/capture.json: line 1: *"
	mkcapture a
	sed -i 's/"format": 1/"format": 2/' a/capture.json
	refused 2 "a/capture.json: capture format 2, this ackproof reads 1"
	mkcapture a
	sed -i 's/"complete"/"recording"/' a/capture.json
	refused 2 "a/capture.json: the capture is 'recording', expected 'complete'"
}

@test "a log that is none" {
	mkcapture a no-log
	refused 2 "a/log: not a dm-log-writes log: magic 0x7878* at byte 0, expected 0x6a*"
	mkcapture a empty
	refused 2 "a/log: not a dm-log-writes log: 0 bytes, expected a superblock *"
}

@test "a log that was cut" {
	mkcapture a cut-header
	refused 1 "a/log: truncated: entry 31 of 32 at byte *, expected a header of 512 bytes *"
	mkcapture a cut-data
	refused 1 "a/log: truncated: entry 32 at byte * has 4096 bytes of data, expected them *"
}

@test "a log without its begin or end mark" {
	mkcapture a no-begin
	refused 1 "a/log: entry 2 at byte *: an ack outside the run's begin and end marks"
	mkcapture a no-end
	refused 1 "a/log: no end mark of this run in 31 entries up to byte *"
}
