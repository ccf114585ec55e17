# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What a campaign's run leaves: for each section what its units sum up to and
# whether that is what it expects, in every form that people and programs read.
# Needs campaign.sh, and capture.sh for VERDICTS.

# The units of section $1 that have ended, an object each, by their number
_units_of()
{
	local id section rest

	while IFS=$'\t' read -r id section rest; do
		[ "$section" = "$1" ] || continue
		cat "$run/units/$id/unit.json" 2> /dev/null ||
			cat "$run/units/$id/failed.json" 2> /dev/null || :
	done < "$run/plan" | jq -s 'sort_by(.nr)'
}

# Sum up section $1's units, on stdin, and say what is not as expected
_section_result()
{
	local section=$1 planned spent

	planned=$(awk -F '\t' -v s="$section" '$2 == s' "$run/plan" | wc -l)
	spent=$(awk -F '\t' -v s="$section" '$2 == s { n += $3 } END { printf "%.1f", n }' "$run/costs")
	jq -c --arg section "$section" --arg variant "${value[$section.variant]}" \
		--arg expect "${value[$section.expect]}" \
		--argjson planned "$planned" --argjson seconds "$spent" \
		--argjson seed "${seed_of[$section]}" \
		--argjson expect_skipped "${value[$section.expect_skipped]}" \
		--argjson expect_replays_lost "${value[$section.expect_replays_lost]}" '
		def total(f): map(f) | add // 0;
		map(select(.failed)) as $failed | map(select(.failed | not)) |
		{section: $section, variant: $variant, seed: $seed,
		 captures: length, failed: ($failed | length), planned: $planned,
		 fsyncs: total(.fsyncs), skipped_min: total(.skipped_min),
		 skipped_exact: (if length == 0 or any(.skipped_exact == null)
			then null else total(.skipped_exact) end),
		 acks_lost: total(.acks_lost), replays: total(.replays),
		 replays_lost: total(.replays_lost), suspects: total(.suspects),
		 suspects_confirmed: total(.suspects_confirmed),
		 retried: (map(select(.retried)) + ($failed | map(select(.retried))) | length),
		 seconds: $seconds, expected: $expect} as $r |
		[($failed[:1][] |
			"\($r.failed) of \($planned) captures failed: \(.failed)" +
			(if .retried then " (at first: \(.retried))" else "" end)),
		 (if $r.captures + $r.failed == 0
		  then "not covered within the budget" else empty end),
		 (if $expect == "clean" and $r.acks_lost > 0
		  then "\($r.acks_lost) acks lost, expected none" else empty end),
		 (if $expect == "clean" and $r.replays_lost > 0
		  then "\($r.replays_lost) replays with loss, expected none" else empty end),
		 (if $expect == "loss" and $r.captures > 0 and $r.acks_lost + $r.replays_lost == 0
		  then "no acks lost and no replay with loss, expected some" else empty end),
		 (if $r.captures > 0 and $r.replays_lost < $expect_replays_lost
		  then "\($r.replays_lost) replays with loss, expected at least \($expect_replays_lost)"
		  else empty end),
		 (if $r.suspects_confirmed != $r.suspects
		  then "\($r.suspects - $r.suspects_confirmed) suspects not confirmed by a mount"
		  else empty end),
		 (map(.complaint // empty)[:1][]),
		 (if $r.skipped_min * 100 < $r.fsyncs * $expect_skipped
		  then "skipped >= \($r.skipped_min) of \($r.fsyncs) fsyncs, expected at least \($expect_skipped) %"
		  else empty end),
		 # a bug may take the flush of another fsync for its own, which is not counted
		 (if $expect == "clean" and $r.skipped_exact != null and
		    $r.skipped_exact < $r.skipped_min
		  then "the counter says \($r.skipped_exact) skipped, the log at least \($r.skipped_min)"
		  else empty end)] as $why |
		$r + {ok: ($why == []), why: $why}'
}

# The files of unit $1's capture, to folder $2
_collect_unit()
{
	mkdir -p "$2"
	[ ! -d "$run/units/$1/capture" ] ||
		(cd "$run/units/$1/capture" && find . -type f ! -name log -exec cp {} "$2" \;)
	[ ! -e "$run/units/$1/failed.json" ] || cp "$run/units/$1/failed.json" "$2"
}

# A line for each point, and for each loss of the audit or of a mount
_section_lines()
{
	local dir=$1 folder nr

	: > "$dir/points.jsonl.new"
	for folder in $(cd "$dir" && find . -mindepth 2 -name unit.json -printf '%h\n' | sort -V); do
		nr=$(jq '{nr, seed}' "$dir/$folder/unit.json")
		jq -c --argjson unit "$nr" '$unit + .' "$dir/$folder/points.jsonl" \
			>> "$dir/points.jsonl.new"
		jq -c --argjson unit "$nr" "$VERDICTS"'.log_xxh128 as $hash | .losses[] |
			$unit + {capture: $hash, by: "audit", point: .from_entry} + . |
			.token = "\($hash)@\(.point):\(verdict)"' "$dir/$folder/audit.json"
		jq -c --argjson unit "$nr" "$VERDICTS"'. as $at |
			select(failed) | (.losses + [verdicts[] | select(test("^(mount:|dirty$)")) |
				{kind: sub(":.*"; ""), verdict: .}])[] |
			$unit + {capture: $at.capture, by: "mount", point: $at.point} + . |
			.token = "\($at.capture)@\(.point):\(.verdict // verdict)" |
			del(.verdict)' "$dir/$folder/points.jsonl"
	done > "$dir/losses.jsonl"
	mv "$dir/points.jsonl.new" "$dir/points.jsonl"
}

# One number or word a line, as key<TAB>value
_section_metrics()
{
	jq -r 'del(.why) | to_entries[] | "\(.key)\t\(.value // "-")"'
}

_xunit()
{
	jq -r --arg campaign "$campaign" --arg began "$began" '
		# XML has no way to write what is no character of it
		def text: tostring | gsub("[\u0000-\u0008\u000b\u000c\u000e-\u001f]"; "?") | @html;
		def count(f): map(select(f)) | length;
		def covered: .captures + .failed > 0;
		def errors: (covered | not) or .failed > 0;
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
		"<testsuite name=\"\($campaign | text)\" tests=\"\(length)\"" +
			" failures=\"\(count((.ok | not) and (errors | not)))\" errors=\"\(count(errors))\" skipped=\"0\"" +
			" time=\"\(map(.seconds) | add * 10 | round / 10)\" timestamp=\"\($began | text)\">",
		(.[] | "  <testcase classname=\"\($campaign | text)\" name=\"\(.section | text)\" time=\"\(.seconds)\">",
			"    <properties>",
			(del(.why, .section) | to_entries[] |
				"      <property name=\"\(.key | text)\" value=\"\(.value // "-" | text)\"/>"),
			"    </properties>",
			(if .ok then empty else
				(if errors then "error" else "failure" end) as $what |
				"    <\($what) message=\"\(.why[0] | text)\">\(.why | join("\n") | text)</\($what)>" end),
			"  </testcase>"),
		"</testsuite>"' "$1/summary.json"
}

# Each section is a test, and its captures are those of a subtest. What was not
# covered is not ok: nothing has shown that it is.
_ktap()
{
	local section units dir=$1

	echo 'KTAP version 1'
	echo "1..${#sections[@]}"
	for section in "${sections[@]}"; do
		units=$(_units_of "$section")
		jq -r --arg section "$section" '"    KTAP version 1",
			"    # Subtest: \($section)", "    1..\(length)",
			(to_entries[] | .key as $i | .value |
				"    \(if .failed or (.as_expected | not) then "not ok" else "ok" end) \($i + 1) capture \(.nr) seed \(.seed)" +
				(if .failed then " # \(.failed)" else "" end))' <<< "$units"
		jq -r --arg section "$section" 'to_entries[] | select(.value.section == $section) |
			(.value.why[] | "# \(gsub("\n"; " "))"),
			"\(if .value.ok then "ok" else "not ok" end) \(.key + 1) \($section)"' "$dir/summary.json"
	done
}

# What others have reported of one of our campaigns, if anything
_posted()
{
	local posted=$ACKPROOF_ROOT/results/expected/$campaign.tsv

	[ "$file" != "$ACKPROOF_ROOT/harness/campaigns/$campaign" ] ||
		[ ! -f "$posted" ] || grep -v "^#" "$posted"
}

_table()
{
	jq -r '.[] | [.section, "\(.captures)/\(.planned)", .fsyncs, .skipped_min,
		(.skipped_exact // "-"), .acks_lost, .replays, .replays_lost,
		"\(.suspects_confirmed)/\(.suspects)", .seconds, .expected,
		(if .ok then "yes" else "NO" end)] | @tsv' "$1/summary.json" |
		cat - <(_posted) |
		column -t -s $'\t' -R 2,3,4,5,6,7,8,9,10 \
		-N 'SECTION,CAPTURES,FSYNCS,SKIPPED>=,EXACT,ACKS LOST,REPLAYS,WITH LOSS,SUSPECTS,SECONDS,EXPECTED,OK'
}

# Of the run as a whole: how it can be run again, and how well it used the cores
_describe_campaign()
{
	local elapsed

	elapsed=$(queue_elapsed)
	jq -n --arg campaign "$campaign" --arg tool "$ACKPROOF_VERSION" \
		--arg began "$began" --argjson seconds "$elapsed" --argjson jobs "$jobs" \
		--argjson budget "${campaign_budget:-null}" \
		--argjson cpu "$(_cpu_seconds)" \
		--argjson used "$(awk -F '\t' '{ n += $3 } END { print n + 0 }' "$run/costs")" \
		--slurpfile summary "$1/summary.json" --rawfile again "$run/again" '
		$summary[0] as $s |
		{campaign: $campaign, tool: $tool, began: $began, seconds: $seconds,
		 budget: $budget, jobs: $jobs,
		 busy: ((if $seconds > 0 then $used / $seconds / $jobs else 1 end) * 1000 | round / 1000),
		 cpu_seconds: $cpu,
		 sections: ($s | length),
		 covered: ($s | map(select(.captures + .failed > 0)) | length),
		 captures: ($s | map(.captures) | add), planned: ($s | map(.planned) | add),
		 failed: ($s | map(.failed) | add), retried: ($s | map(.retried) | add),
		 again: ($again | rtrimstr("\n"))}'
}

# Seconds that this process's children have computed, without those of a run before,
# from what times says: it must be asked outside of any subshell
_cpu_seconds()
{
	awk 'NR == 2 {
		for (i = 1; i <= 2; i++) {
			split($i, part, /[ms]/)
			n += part[1] * 60 + part[2]
		}
	}
	END { printf "%.1f", n }' "$run/times"
}

# All of the results, in folder $1
results_make()
{
	local dir=$1 section id nr

	times > "$run/times"
	mkdir -p "$dir"
	cp "$file" "$dir/campaign"
	while IFS=$'\t' read -r id section nr _; do
		if [ -e "$run/units/$id/unit.json" ] || [ -e "$run/units/$id/failed.json" ]; then
			_collect_unit "$id" "$dir/$section/$nr"
		fi
	done < "$run/plan"
	for section in "${sections[@]}"; do
		mkdir -p "$dir/$section"
		_units_of "$section" | _section_result "$section" > "$dir/$section/summary.json"
		_section_metrics < "$dir/$section/summary.json" > "$dir/$section/metrics"
		_section_lines "$dir/$section"
		cat "$dir/$section/summary.json" >> "$dir/sections"
		rm "$dir/$section/summary.json"
	done
	jq -s . "$dir/sections" > "$dir/summary.json"
	rm "$dir/sections"
	_describe_campaign "$dir" > "$dir/run.json"
	_ktap "$dir" > "$dir/result.ktap"
	_xunit "$dir" > "$dir/result.xml"
	_table "$dir" > "$dir/table"
}

# What failed, and of each the line that finds a loss of it again
results_print_failures()
{
	local dir=$1 section nr token at

	while read -r section; do
		jq -r --arg section "$section" '.[] | select(.section == $section) |
			"\(.section): not as expected: \(.why | join("; "))"' "$dir/summary.json"
		# of a capture that was kept, if there is one
		while IFS=$'\t' read -r nr token; do
			at=$dir/$section/$nr
			[ -e "$at/capture.tar" ] || continue
			echo "  reproduce: ackproof reproduce $token $at/capture.tar"
			break
		done < <(jq -r '"\(if .by == "mount" then 0 else 1 end)\t\(.nr)\t\(.token)"' \
			"$dir/$section/losses.jsonl" | sort -s -k 1,1n -k 2,2n | cut -f 2-)
	done < <(jq -r '.[] | select(.ok | not) | .section' "$dir/summary.json")
}
