#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the bisections of kernels: what they find, that nothing but a loss is
# taken for one, and that a killed run ends like one that was not. The source is
# a small one: see kernel/Makefile. Its fs/file.c says in place of a guest what a
# capture ends like: see fake_guests.

load lib
load source

setup()
{
	own_folder
	export ACKPROOF_PATCHES=$PWD/patches ACKPROOF_TARBALL=$PWD/linux.tar
	fake_guests
	make_source
	make_patches
	tar -cf linux.tar --transform 's,^source,linux-9.9,' source
	: > captured
}

# A copy of the harness whose captures and replays boot nothing. A capture ends
# as a line of the kernel says:
#
#	lose		with a loss
#	lose at N	with a loss from the Nth capture of all on
#	exit N		with that status
#	kill		not at all: the bisection is killed, once
#
# and without such a line with none. The file captured gets a line for each.
fake_guests()
{
	mkdir root
	cp -r "$top/harness" root/
	cat >> root/harness/cmd/capture <<- 'END'
		cmd_main()
		{
			local word

			_parse "$@"
			kernel_build "$variant"
			jq -r .commit.describe "$kernel_dir/variant.json" >> "$ACKPROOF_ROOT/../captured"
			if grep -qx kill "$kernel_dir/linux" && [ -f "$ACKPROOF_ROOT/../victim" ]; then
				# it takes this process along
				mv "$ACKPROOF_ROOT/../victim" "$ACKPROOF_ROOT/../killed"
				kill -KILL "$(cat "$ACKPROOF_ROOT/../killed")"
				sleep 60
			fi
			word=$(sed -n 's/^exit //p' "$kernel_dir/linux")
			[ -z "$word" ] || die "$word" "the capture ends with $word"
			word=none
			if grep -qx lose "$kernel_dir/linux" ||
			   [ "$(sed -n 's/^lose at //p' "$kernel_dir/linux")" = "$seed" ]; then
				word=loss
			fi
			mkcapture "$folder" $word
		}
	END
	cat >> root/harness/cmd/replay <<- 'END'
		cmd_main()
		{
			echo '{"replays": 3, "replays_lost": '"$(cat "$ACKPROOF_ROOT/../confirmed" 2> /dev/null || echo 3)"'}'
		}
	END
	PATH=$built/tests/shell:$PATH
}

ackproof()
{
	root/harness/ackproof "$@"
}

# history LINE...: a commit for each, cN, with that line in fs/file.c; or "-" to
# leave it as it is, or "ok" for none. "one" is before them.
history()
{
	local line n=0

	git_tree
	for line; do
		n=$((n + 1))
		echo "harmless $n" >> source/fs/log.c
		case $line in
		-) ;;
		ok) seq 10 > source/fs/file.c ;;
		*) { seq 10; echo "$line"; } > source/fs/file.c ;;
		esac
		commit "c$n"
	done
}

# Bisect from "one" to the last commit with these options
bisect()
{
	ackproof bisect kernel --good one --bad master -o out "$@" source
}

verdicts()
{
	jq -r '"\(.name | split(" ")[1]) \(.verdict) \(.captures) \(.losses)"' out/verdicts.jsonl
}

@test "how many clean captures make a good answer, against exact values" {
	clean()
	{
		ACKPROOF_ROOT=$top bash -eu -o pipefail -c '
			. "$ACKPROOF_ROOT/harness/lib/common.sh"
			. "$ACKPROOF_ROOT/harness/lib/bisect.sh"
			clean_captures "$@"' bash "$@"
	}
	# all of m lost: P = 1 / binomial(n + m + 1, n)
	[ "$(clean 6 6)" = "6 $(awk 'BEGIN { print 1 / 1716 }')" ]
	[ "$(clean 6 6 5)" = "5 $(awk 'BEGIN { print 1 / 792 }')" ]
	[ "$(clean 4 4)" = "8 $(awk 'BEGIN { print 1 / 1287 }')" ]
	# one of two: B(2, 2 + n) / B(2, 2) = 6 / ((n + 2) (n + 3))
	[ "$(clean 2 1 3)" = "3 $(awk 'BEGIN { print 6 / 30 }')" ]
	[ "$(clean 2 1)" = "75 $(awk 'BEGIN { print 6 / 77 / 78 }')" ]
}

@test "the first bad commit, and nothing else is touched" {
	local before

	history - - - '#error' ok - - 'exit 125' ok - lose - - - - -
	# somebody is at work there
	git -C source checkout -q c3
	echo mine >> source/fs/log.c
	git -C source add .
	git -C source bisect start --no-checkout c9 c2
	git -C source rev-parse HEAD BISECT_HEAD > heads
	before=$(state source)
	ackproof bisect kernel --good one --bad c16 -o out --json source > json
	cat out/git.out
	[ "$(state source)" = "$before" ]
	[ "$(jq -r '.first_bad.name | split(" ")[1]' json)" = c11 ]
	[ "$(jq -r '.good[0].name | split(" ")[1]' json)" = c10 ]
	[ "$(jq -c '[.captures_needed, .chance < 0.001, .suspects, .suspects_confirmed]' json)" = '[6,true,3,3]' ]
	cmp json out/report.json
	# the bad end loses all, good ones lose none, bad ones end with the first
	[[ $(verdicts) == $'c16 bad 6 6\none good 6 0\n'* ]]
	[[ $(verdicts) == *'c11 bad 1 1'* && $(verdicts) == *'c10 good 6 0'* ]]
	# what is said to reproduce it does
	run -1 ackproof audit "$(jq -r '.reproduce | ltrimstr("ackproof audit ")' json)"
	[ "$(ls out/lost)" = "$(jq -r 'select(.verdict == "bad").id' out/verdicts.jsonl | sort -u)" ]
	[ ! -e out/git ] && [ ! -e out/run ] && [ ! -e out/jobs ]
}

@test "the text of a report" {
	history - '#error' ok - lose -
	run --separate-stderr -0 bisect --captures 2
	echo "$output"
	[[ ${lines[0]} == "first bad commit: "*" c5" ]]
	[ "${lines[1]}" = "  1 of 1 captures lost acks, 1 of 10" ]
	[ "${lines[2]}" = "  3 of 3 suspects confirmed by a mount" ]
	[[ ${lines[3]} == "good: "*" c4" ]]
	[ "${lines[4]}" = "  0 of 2 captures lost acks, 0 of 20" ]
	[[ $output == *"2 captures to call one good;"*"a probability of 1 in 36"* ]]
	[[ ${lines[-1]} == "reproduce: ackproof audit $PWD/out/lost/"* ]]
	[[ $stderr == *" c3: good, 0 of 2 captures lost acks, "* ]]
}

@test "a run killed in the middle goes on, to the same answer, and repeats nothing" {
	history - - - - - kill lose - - -
	bisect --captures 2 > whole
	mv out/report.json .
	rm -rf out
	: > captured
	unset ACKPROOF_SUPERVISED
	(sleep 0.1; exec env bash -c 'echo $$ > victim; exec root/harness/ackproof bisect kernel --good one --bad master -o out --captures 2 source') \
		> first 2>&1 3>&- || [ $? = 137 ]
	[ ! -e victim ]
	[ ! -e out/report.json ]
	[ "$(verdicts | wc -l)" -ge 3 ]
	verdicts | cut -d ' ' -f 1 | sort > before
	: > captured
	bisect --captures 2 > again 2> err
	[[ $(cat err) == *"going on with $PWD/out"* ]]
	jq 'del(.seconds, .tested) | del(.. | .seconds?)' report.json > a
	jq 'del(.seconds, .tested) | del(.. | .seconds?)' out/report.json > b
	cmp a b
	[ -z "$(sort -u captured | comm -12 - before)" ]
	[ -z "$(verdicts | sort | uniq -d)" ]
}

@test "once more when it has ended: the same report, from what is kept" {
	history - - lose -
	bisect --captures 2 > first
	: > captured
	bisect --captures 2 > second
	cmp first second
	[ ! -s captured ]
}

@test "what the machine is to blame for stops it, and is no verdict" {
	local line

	for line in 'exit 77' 'exit 127' 'exit 137' 'exit 2' 'exit 126'; do
		rm -rf out source patches
		make_source
		make_patches
		history - "$line" - - lose
		run --separate-stderr -77 bisect --captures 1
		echo "$line: $stderr"
		[[ $stderr == *" c"[234]": "*"ends with ${line#exit }"* ]]
		[[ $stderr == *"the bisection has stopped; the same command goes on"* ]]
		[[ $(verdicts) != *c[234]* ]]
		[ ! -e out/report.json ]
	done
}

@test "a bisector that is not there any more is not bad" {
	history - - - lose -
	# gone when the ends are judged
	cat >> root/harness/cmd/capture <<- 'END'
		eval "real_$(declare -f cmd_main)"
		cmd_main()
		{
			real_cmd_main "$@"
			[ "$(wc -l < "$ACKPROOF_ROOT/../captured")" -lt 7 ] ||
				mv "$ACKPROOF_ROOT/harness/bisect" "$ACKPROOF_ROOT/gone" 2> /dev/null || :
		}
	END
	run --separate-stderr -77 bisect --captures 1
	echo "$stderr"
	[[ $stderr == *"the bisection has stopped; the same command goes on" ]]
	[ "$(verdicts)" = $'c5 bad 6 6\none good 1 0' ]
	mv root/gone root/harness/bisect
	: > captured
	bisect --captures 1 > report
	grep -q 'first bad commit: .* c4$' report
}

@test "a kernel does not boot: only where another one still does" {
	# the kernel is a script here: it boots unless the file "broken" is there
	cat > source/fs/aaa.c <<- END
		#!/bin/bash
		for arg; do case \$arg in ACKPROOF_JOB=*) job=\${arg#*=};; esac; done
		[ -e $PWD/broken ] || echo 0 > "\$job/status"
		exit
	END
	sed -i 's/^\tcat $(objects) > $@/&; chmod 755 $@/' source/Makefile
	history - - 'exit 125' ok lose -
	bisect --captures 1 > report
	grep -q 'first bad commit: .* c5$' report
	[[ $(verdicts) == *"c3 skip 0 0"* ]]
	rm -rf out
	touch broken
	run --separate-stderr -77 bisect --captures 1
	echo "$stderr"
	[[ $stderr == *" c3: the capture ends with 125; but a kernel that has run here does not boot any more, either"* ]]
	[[ $(verdicts) != *c3* ]]
}

@test "only those that cannot be tested are left: which ones" {
	history - '#error' 'exit 1' lose -
	run --separate-stderr -125 bisect --captures 1
	echo "$output"
	[[ $output == *"the first bad commit is one of these"* ]]
	[ "$(jq -r '.candidates[]' out/report.json | sort)" = "$(git -C source rev-parse c2 c3 c4 | sort)" ]
	[ "$(jq .first_bad out/report.json)" = null ]
	[[ $output == *"skipped: "*" c2"*"does not build"*"skipped: "*" c3"* ]]
	grep -q 'error:' "out/failed/$(git -C source rev-parse c2)"
}

@test "ends that are not as said" {
	history - lose - lose
	run --separate-stderr -1 ackproof -q bisect kernel --good one --bad c1 -o a source
	[[ $stderr == "ackproof: --bad: "*" lost nothing in 48 captures" ]]
	run --separate-stderr -1 ackproof -q bisect kernel --good c2 --bad c4 -o b source
	[[ $stderr == "ackproof: --good: "*" loses acks, too: ackproof audit $PWD/b/lost/"* ]]
	{ seq 10; echo '#error'; } > source/fs/file.c
	commit broken
	run --separate-stderr -125 ackproof -q bisect kernel --good one --bad broken -o c source
	[[ $stderr == "ackproof: --bad: "*" cannot be tested: "*"does not build: "* ]]
	fails_with 2 "ackproof: --good: * is no ancestor of *" -q bisect kernel --good c3 --bad c1 -o d source
	fails_with 2 "ackproof: --good: * is no ancestor of *" -q bisect kernel --good c3 --bad c3 -o e source
}

@test "a loss that is too rare for a verdict" {
	history - 'lose at 3' -
	run --separate-stderr -1 ackproof -q bisect kernel --good one --bad master -o out source
	echo "$stderr"
	[[ $stderr == "ackproof: 1 of 48 captures lost acks: to call a kernel good takes 1486 captures; "* ]]
	rm -r out
	bisect --captures 4 > report
	grep -q 'first bad commit: .* c2$' report
}

@test "a folder of something else is left alone" {
	history - lose
	mkdir out
	echo mine > out/file
	fails_with 2 "ackproof: --output: $PWD/out is there, and holds no bisection" \
		bisect kernel --good one --bad master -o out source
	rm out/file
	bisect --captures 1 > report
	fails_with 2 "ackproof: $PWD/out holds another bisection: see its file parameters" \
		bisect kernel --good one --bad master -o out --captures 2 source
	# another kernel is another bisection
	echo '# new' >> patches/config/um.config
	fails_with 2 "ackproof: $PWD/out holds another bisection: see its file parameters" \
		bisect kernel --good one --bad master -o out --captures 1 source
	# and the default is a folder for each
	ackproof -q bisect kernel --good one --bad master --captures 1 source > one
	ackproof -q bisect kernel --good one --bad master --captures 2 source > two
	[ "$(ls results/bisect | wc -l)" = 2 ]
}

@test "a mount that does not confirm the audit" {
	history - lose
	echo 2 > confirmed
	run --separate-stderr -1 ackproof -q bisect kernel --good one --bad master --captures 1 source
	[[ $output == *"2 of 3 suspects confirmed by a mount"* ]]
	[[ $stderr == "ackproof: a mount does not confirm what the audit found: a bug of ackproof" ]]
}

# series LINE...: a folder of patches, each makes fs/file.c end in that line
series()
{
	local line n=0 last=10

	rm -rf theirs
	mkdir theirs
	for line; do
		n=$((n + 1))
		cp source/fs/file.c theirs/old
		[ "$last" = 10 ] || sed -i "\$s/.*/$last/" theirs/old
		sed "\$s/.*/$line/" theirs/old > theirs/new
		diff -u --label a/fs/file.c --label b/fs/file.c theirs/old theirs/new \
			> "theirs/$n-p.patch" || [ $? = 1 ]
		last=$line
	done
	rm theirs/old theirs/new
}

@test "series: which patch first loses, and which heals it" {
	series a b '#error' lose lose2 lose healed h
	ackproof bisect series -o out --json theirs > json 2> err
	cat err json
	[ "$(jq -c '[.first_bad, .changes, [.patches[] | .verdict]]' json)" = \
	  '[{"from":3,"to":4},[{"from":3,"to":4,"change":"loses"},{"from":5,"to":5,"change":"heals"},{"from":6,"to":6,"change":"loses"},{"from":7,"to":7,"change":"heals"}],["good","good","good","skip","bad","good","bad","good","good"]]' ]
	# those before the loss have as many captures as those after it
	[ "$(jq -c '[.captures_needed, (.patches[] | select(.verdict == "good") | .captures)]' json)" = '[6,6,6,6,6,6,6]' ]
	run --separate-stderr -0 ackproof bisect series -o out theirs
	[[ $output == *$'\none of patches 3 to 4 loses blocks\npatch 5, 5-p.patch heals that\n'* ]]
	run -1 ackproof audit "$(jq -r '.reproduce | ltrimstr("ackproof audit ")' json)"
}

@test "series: more captures of the good ones, once the loss is known to be rare" {
	series a 'lose at 2' b
	run --separate-stderr -0 ackproof bisect series --captures 2 -o a theirs
	run -1 ackproof -q bisect series -o out theirs
	[[ $output == *"1 of 48 captures lost acks"* ]]
}

@test "series: nothing loses, or nothing can be tested, or the base loses" {
	series a b
	run --separate-stderr -1 ackproof -q bisect series theirs
	[[ $output == *"no patch loses blocks"* ]]
	series '#error' '#error b'
	tar -xf linux.tar
	{ seq 9; echo '#error'; } > linux-9.9/fs/file.c
	printf -- '--- a/fs/log.c\n+++ b/fs/log.c\n@@ -1 +1 @@\n-1\n+one\n' > theirs/1-p.patch
	rm theirs/2-p.patch
	run --separate-stderr -125 ackproof -q bisect series --source linux-9.9 theirs
	{ seq 9; echo lose; } > linux-9.9/fs/file.c
	run --separate-stderr -1 ackproof -q bisect series --source linux-9.9 theirs
	[[ $output == *"the base loses blocks already"* ]]
}

@test "usage" {
	usage_error "expected kernel, log or series; see*" bisect none
	usage_error "expected a git tree; see*" bisect kernel --good a --bad b
	usage_error "expected --good; see*" bisect kernel --bad b source
	usage_error "expected --bad; see*" bisect kernel --good b source
	usage_error "one tree only; a section goes after --; see*" bisect kernel source source
	usage_error "unknown option '--none'; see*" bisect kernel --none source
	usage_error "--good needs a commit; see*" bisect kernel --good
	usage_error "expected one section after --; see*" bisect kernel source --
	usage_error "--captures: '0' is not a number from 1 to 10000" bisect kernel --captures 0
	usage_error "--set: 'seed', expected KEY=VALUE; see*" bisect series --set seed theirs
	usage_error "expected a folder of patches; see*" bisect series
	mkdir theirs
	usage_error "no patches in $PWD/theirs" bisect series theirs
	history -
	usage_error "--commit: there is no commit 'none' in *" bisect kernel --good none --bad c1 source
	usage_error "no section 'none' in campaign 528; there are: series *" \
		bisect kernel --good one --bad c1 source -- none
	usage_error "no campaign 'none'; there are: 528 *" \
		bisect kernel --good one --bad c1 source -- none/series
	usage_error "--set: unknown key 'none', did you mean noise?; *" \
		bisect kernel --good one --bad c1 --set none=1 source
	usage_error "*: section series: --writers: 'x' is not a number from 1 to 1024" \
		bisect kernel --good one --bad c1 --set writers=x source
	[ ! -e results ]
}
