# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What the commands that mount a capture's states share. Needs kernel.sh.

# replay_kernel CAPTURE [VARIANT]: the kernel to mount on: by name, or the very
# one of the capture if it is still there, or else one of its name. Sets
# kernel_dir.
replay_kernel()
{
	local capture=$1 variant=${2-} hash

	if [ -z "$variant$kernel_source$kernel_series${kernel_patches[*]}" ]; then
		hash=$(jq -r .kernel.hash "$capture/capture.json")
		kernel_dir=$ACKPROOF_BUILD/kernel/out/$hash
		[ ! -f "$kernel_dir/variant.json" ] || return 0
	fi
	: "${variant:=$(jq -r .kernel.variant "$capture/capture.json")}"
	kernel_build "$variant"
}
