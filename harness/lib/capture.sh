# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What tells a capture from another, and the kernel that it was recorded on.

# log_hash LOG: XXH128 of a log up to the end of its last entry
log_hash()
{
	local used

	used=$("$ACKPROOF_BIN/lwlog" stat --json "$1" | jq .used)
	head -c "$used" "$1" | xxhsum -H2 | cut -d ' ' -f 1
}

# capture_hash CAPTURE: the same of a capture, which must be one that can be
# audited. In $(...), end with "|| exit".
capture_hash()
{
	local status=0 audit

	audit=$("$ACKPROOF_BIN/lwaudit" --json "$1") || status=$?
	# losses are no reason not to have one
	[ $status -eq 0 ] || [ -n "$audit" ] || return $status
	jq -r .log_xxh128 <<< "$audit"
}

# Whether the kernel in folder $2 is the very one of capture $1: one of another
# build may have the same name, and the same sources. This machine's own has no
# file.
is_kernel_of()
{
	local sum=''

	[ -f "$2/variant.json" ] || return 1
	if [ -f "$2/linux" ]; then
		sum=$(sha256sum < "$2/linux" | cut -d ' ' -f 1)
	else
		jq -e '.source == "running"' "$2/variant.json" > /dev/null || return 1
	fi
	jq -e --arg sum "$sum" --slurpfile variant "$2/variant.json" '.kernel |
		.hash == $variant[0].hash and (.linux_sha256 // $sum) == $sum' \
		"$1/capture.json" > /dev/null
}

# capture_kernel CAPTURE: find the very kernel that it was recorded on. Sets
# kernel_dir to where it is, or would be; returns 1 if it is not there.
capture_kernel()
{
	local hash

	hash=$(jq -r '.kernel.hash // ""' "$1/capture.json")
	kernel_dir=$ACKPROOF_BUILD/kernel/out/$hash
	[[ $hash =~ ^[0-9a-f]{16}$ ]] && [ -f "$kernel_dir/linux" ] &&
		is_kernel_of "$1" "$kernel_dir"
}

# kernel_of_capture CAPTURE VARIANT: the kernel to mount its states on, for the
# engine. VARIANT if it is not empty, or with the user's source or patches; or else
# the very one that recorded it if it is there, or one of its name as it is now. Sets
# kernel_dir. Needs kernel.sh.
kernel_of_capture()
{
	local variant=$2 arch

	arch=$(engine_arch)
	if [ -n "$arch" ]; then
		if [ -z "$variant$kernel_source$kernel_series${kernel_patches[*]}" ] &&
		   jq -e --arg arch "$arch" '(.kernel.arch // "um") == $arch' \
			"$1/capture.json" > /dev/null && capture_kernel "$1"; then
			return
		fi
		[ -n "$variant" ] || variant=$(jq -r .kernel.variant "$1/capture.json")
		[ "$variant" != local ] ||
			die $EXIT_USAGE "$1 was recorded on the kernel of a machine: name one to mount on with --variant"
	fi
	kernel_build "$variant"
}

# check_states KERNEL JOB CAPTURE TIMEOUT CPU [CRASHCHECK-OPTION]...
#
# Check states of a capture in a guest, as job_run does. The job's folder has
# "points", an entry a line, and gets "points.jsonl", a line for each as it was
# checked. Needs job.sh.
check_states()
{
	local kernel=$1 dir=$2 capture=$3 timeout=$4 cpu=$5 kib

	shift 5
	kib=$(($(jq .data_size "$capture/capture.json") / 1024))
	job_command "$dir" bash "$GUEST/host$ACKPROOF_ROOT/harness/guest/replay" \
		"$GUEST/host$ACKPROOF_BIN" "$GUEST/host$capture" \
		"$GUEST/disk/base" "$GUEST/disk/cow" "$GUEST/mnt" "$@"
	job_run "$kernel" "$dir" "$timeout" "$cpu" "base=ram:$kib" "cow=ram:$kib"
}

# What jq needs to tell the verdicts on a point, from a line of points.jsonl: each
# what is lost and how, in a word; and tokens, which name them on any machine.
VERDICTS='
	def verdict:
		"\(.kind):w\(.writer):f\(.file):b\(.block):op\(.op)" +
		(if has("got") then ":got\(.got)" else "" end);
	def verdicts:
		(if .mount == "ok" then .losses | map(verdict)
		 else ["mount:" + (.mount | gsub("[^A-Za-z0-9]"; "_"))] end) +
		(if .repair == "dirty" then ["dirty"] else [] end);
	def failed: verdicts != [];
	def tokens: "\(.capture)@\(.point):" as $at | verdicts | map($at + .);
'
