#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards recording, auditing and replaying on real kernels, from the log to the
# mounted states.

load helpers

setup_file()
{
	shared_capture
}

setup()
{
	e2e_setup
	shared=$BATS_FILE_TMPDIR/shared
}

@test "a capture says what it depends on" {
	jq -e '.state == "complete" and .kernel.variant == "series" and
		(.kernel.patches | length) == 5 and .workload.seed == 1 and
		(.kernel.version | startswith("6.12")) and
		(.mkfs | test("size=10485760")) and .delay.write_ms == 1' \
		"$shared/capture.json"
	[ "$(jq -r .log_xxh128 "$shared/capture.json")" = \
		"$(ackproof audit --json "$shared" | jq -r .log_xxh128)" ]
	[ "$(jq -r .kernel.linux_sha256 "$shared/capture.json")" = \
		"$(sha256sum < "$(ackproof kernel path series)/linux" | cut -d ' ' -f 1)" ]
	[ -s "$shared/dmesg" ]
}

@test "the series loses nothing, and its counters bear the log's bound out" {
	ackproof audit --json "$shared" > audit.json
	jq -e '.acks == 1200 and .acks_lost == 0 and .flushes > 0' audit.json
	jq -e --slurpfile audit audit.json '.counters.fsync |
		.calls == 1200 and .calls == .covered + .skipped + .flushed and
		.skipped >= $audit[0].skipped_min' "$shared/capture.json"
}

@test "states mount, hold all that was acknowledged, and are clean" {
	local spec=6@ack,2@flush,2@fua,1@mark

	# an entry that several kinds choose, a FLUSH with FUA say, is one point
	"$top/build/bin/lwpoints" "$shared" "$spec" > chosen
	ackproof replay --jobs 2 --points "$spec" --repair --json --output points.jsonl \
		"$shared" > summary.json
	cat summary.json
	jq -e --argjson n "$(wc -l < chosen)" '$n >= 6 and .replays == $n and
		.replays_lost == 0 and .dirty == 0' summary.json
	diff chosen <(jq .point points.jsonl | sort -n)
	jq -se 'all(.mount == "ok" and .repair == "clean")' points.jsonl
	nothing_left
}

@test "the same seed gives the same workload, another seed another" {
	ackproof -q capture --fsyncs 20 --writers 2 --delay 0,0 --seed 7 a
	ackproof -q capture --fsyncs 20 --writers 2 --delay 0,0 --seed 7 b
	ackproof -q capture --fsyncs 20 --writers 2 --delay 0,0 --seed 8 c
	_acks() { grep -aoE 'ack:[0-9a-f]{16}:[0-9]+:[0-9]+' < <(head -c 60M "$1/log") | sort; }
	[ "$(_acks a | wc -l)" -eq 40 ]
	[ "$(_acks a)" = "$(_acks b)" ]
	[ "$(_acks a)" != "$(_acks c)" ]
}

@test "append, mixed and fdatasync" {
	local mode

	for mode in append mixed; do
		ackproof -q capture --mode $mode --sync fdatasync --files 2 \
			--fsyncs 60 --delay 1,1 $mode
		ackproof audit $mode
		ackproof -q replay --points 6@ack $mode
	done
}

@test "a flipped byte of acknowledged data is found by the audit and by a mount" {
	local at

	copy_capture flipped
	# the last sector that the run wrote, so that nothing goes over it
	at=$(head -c 60M flipped/log | grep -aobF ackproof | tail -n 1)
	flip flipped/log $((${at%%:*} + 100))
	run -1 ackproof audit --json flipped
	# the block was lost by the write that was damaged, and is so at its ack
	jq -e '.blocks_lost > 0 and .by_kind.foreign == .blocks_lost' <<< "$output"
	run -1 ackproof -q replay --points suspects flipped
	[[ $output == *"gives an image with hash"* ]]
}

@test "a truncated log, a missing end mark, no log" {
	local size at

	size=$(ackproof audit --json "$shared" | jq .log_bytes)
	copy_capture cut
	truncate -s $((size - 100)) cut/log
	run -1 ackproof audit cut
	[[ $output == *"cut/log: truncated: entry "*" at byte "*", expected "* ]]
	run -1 ackproof -q replay cut

	copy_capture endless
	at=$(head -c "$size" endless/log | grep -aobE 'end:[0-9a-f]{16}' | tail -n 1)
	flip endless/log "${at%%:*}"
	run -1 ackproof audit endless
	[[ $output == *"endless/log: no end mark"* ]]
	run -1 ackproof -q replay endless

	copy_capture none
	head -c 1M /dev/urandom > none/log
	run -2 ackproof audit none
	[[ $output == *"none/log: not a dm-log-writes log: magic "*", expected "* ]]
	run -2 ackproof -q replay none
}

@test "a data image that is not what the log says fails the replay" {
	copy_capture other
	jq '.data_xxh128 = "0123456789abcdef0123456789abcdef"' \
		"$shared/capture.json" > other/capture.json
	run -1 ackproof -q replay --points 1@ack other
	[[ $output == *"gives an image with hash"* ]]
}

@test "a state that does not mount is a finding, not a failure" {
	local at

	copy_capture unmountable
	# damage each superblock that mkfs or the kernel wrote
	head -c 60M unmountable/log | grep -aobF XFSB | cut -d : -f 1 > supers
	[ -s supers ]
	while read -r at; do
		flip unmountable/log $((at + 30))
	done < supers
	run -1 ackproof -q replay --points 2@ack --json --output points.jsonl unmountable
	jq -se 'length == 2 and all(.mount != "ok")' points.jsonl
}

@test "a kernel that complains about a state is not a clean replay" {
	copy_capture odd
	jq '.mount_options = "nosuchoption"' "$shared/capture.json" > odd/capture.json
	run -1 ackproof -q replay --points 2@ack odd
	[[ $output == *"2 replays, 2 with loss"*"mount: Invalid argument"* ]]
}

@test "a log disk that fills fails the capture with that reason" {
	run -1 ackproof -q capture --fsyncs 150 --delay 0,0 --log-disk 20m full
	[[ $output == *"log device is full or failed"* ]]
	[ ! -e full ]
}

@test "a writer that fails fails the capture with that reason" {
	run -1 ackproof -q capture --fsyncs 1 --blocks 5000 --data-size 100m \
		--delay 0,0 enospc
	[[ $output == *"No space left on device"* ]]
	[ ! -e enospc ]
}

@test "a disk that is too small fails the capture with mkfs's reason" {
	run -1 ackproof -q capture --fsyncs 1 --data-size 4m small
	[[ $output == *"mkfs.xfs failed"* ]]
	[ ! -e small ]
}

@test "a kernel that complains fails the capture, and --patch works" {
	cat > warn.patch <<-'END'
		--- a/fs/xfs/xfs_file.c
		+++ b/fs/xfs/xfs_file.c
		@@ -72,2 +72,3 @@
		 	trace_xfs_dir_fsync(ip);
		+	WARN_ON_ONCE(1);
		 	return xfs_log_force_inode(ip);
	END
	run -1 ackproof -q capture --fsyncs 10 --delay 0,0 --variant stock-dmfix \
		--patch warn.patch warned
	[[ $output == *"oops: "*"WARNING: CPU"* ]]
	[ ! -e warned ]
}

@test "it runs as a user who is not root" {
	[ "$(id -u)" -eq 0 ] || skip "all tests run as such a user already"
	setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$top/harness/ackproof" ||
		skip "the project's folder is closed to other users"
	own=$(mktemp -d)	# bats closes its folders to others
	chown 65534:65534 "$own"
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		env ACKPROOF_JOBS="$own/jobs" "$top/harness/ackproof" -q \
		capture --fsyncs 20 --delay 0,0 "$own/capture"
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		env ACKPROOF_JOBS="$own/jobs" "$top/harness/ackproof" -q \
		replay --points 4@ack "$own/capture"
	[ "$(stat -c %u "$own/capture"/log)" -eq 65534 ]
}
