#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the bisections of kernels on real ones: the planted commit is found in a
# history over the packaged source, where some commits do not build or boot, also
# by a run that was killed; and the patch of a series that loses, and the one that
# heals it.

load helpers

# A capture takes two seconds so, and nearly each shows the bug
SECTION=(--set fsyncs=300 --set "delay=2,1")

setup_file()
{
	local inputs

	# made once for the same patches, as the kernels are
	inputs=$(cat "$top"/kernel-patches/6.12/* "$top/kernel-patches/mutants/early-snapshot.patch" \
		"$BATS_TEST_DIRNAME/make-history" | sha256sum | cut -c 1-12)
	export history=$ACKPROOF_BUILD/tests/history-$inputs.git
	[ -d "$history" ] || "$BATS_TEST_DIRNAME/make-history" "$history"
}

setup()
{
	e2e_setup
}

refs()
{
	(cd "$history" && find . ! -path './objects/*' -type f -exec sha256sum {} +) | sort
}

@test "the planted commit of 32, by a run that is killed halfway and goes on" {
	local command verdicts line pid i

	refs > before
	command=("$top/harness/ackproof" bisect kernel --good good --bad bad
		"${SECTION[@]}" -o "$PWD/results/bisect" --json "$history")
	"${command[@]}" > first 2> first.err &
	pid=$!
	exec {verdicts}< <(tail -n +1 --pid=$pid -F results/bisect/verdicts.jsonl 2> /dev/null)
	for ((i = 0; i < 5; i++)); do
		read -r line <&"$verdicts" || { cat first.err; return 1; }
		jq -r .name <<< "$line"
	done
	kill -KILL $pid
	wait $pid || [ $? -eq 137 ]
	nothing_left
	[ ! -s first ]
	cp results/bisect/verdicts.jsonl .

	"${command[@]}" > report
	jq -e '(.first_bad.name | endswith(" planted")) and .chance < 0.001 and
		.first_bad.losses > 0 and .good[0].losses == 0 and
		.good[0].captures == .captures_needed and
		(.suspects > 0 and .suspects == .suspects_confirmed)' report || { cat report; return 1; }
	# those that cannot be tested are told from those that lose
	jq -se 'any(.why // "" | test("does not build: .*#error commit 16")) and
		any(.why // "" | test("does not boot: panic: .*commit 23"))' results/bisect/verdicts.jsonl
	# and nothing that was known was found out again
	cmp <(head -n 5 results/bisect/verdicts.jsonl) <(head -n 5 verdicts.jsonl)
	[ "$(jq -r .id results/bisect/verdicts.jsonl | sort | uniq -d)" = '' ]
	# shellcheck disable=SC2046 # its words
	run -1 ackproof $(jq -r '.reproduce | ltrimstr("ackproof ")' report)
	refs | cmp - before
}

@test "a patch of eight loses blocks, and a later one heals that" {
	local n=0 patch

	mkdir theirs
	for patch in "$top"/kernel-patches/6.12/000[2-4]-*; do
		n=$((n + 1))
		cp "$patch" "theirs/$n-${patch##*/}"
	done
	git -C "$history" log -p -1 --format= planted~20 > theirs/4-comment.patch
	git -C "$history" diff planted^ planted > theirs/5-early.patch
	git -C "$history" log -p -1 --format= planted~19 > theirs/6-comment.patch
	git -C "$history" diff planted planted^ > theirs/7-late-again.patch
	git -C "$history" log -p -1 --format= planted~18 > theirs/8-comment.patch
	ackproof bisect series "${SECTION[@]}" --captures 3 -o results/series --json theirs > report
	jq -e '.first_bad == {from: 5, to: 5} and
		.changes == [{from: 5, to: 5, change: "loses"}, {from: 7, to: 7, change: "heals"}] and
		(.patches | length == 9) and
		([.patches[] | .verdict] | index("skip") | not)' report || { cat report; return 1; }
}
