# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Captures in archives. An archive is a tar of plain files:
#
#	MANIFEST		the first: what else there must be
#	log.zst			the log up to its last entry, in seekable frames
#	trace.zst		the trace of dm-log-writes, if there is one
#	capture.json, ...	the capture's other files
#	kernel/...		what it was recorded on: linux.zst, variant.json,
#				config, patches/
#
# MANIFEST has a line for the format, then one for each member: XXH128, bytes,
# name; and one for the log as it is unpacked. An archive is, byte for byte, what
# tar makes of its members, so that nothing in it is damaged unseen.

ARCHIVE_FORMAT='ackproof capture 1'

# Names that members may have: below no other folder, not hidden, and nothing that
# tar would escape
ARCHIVE_NAME='(kernel/(patches/)?)?[A-Za-z0-9_+=,@~][A-Za-z0-9_+=,@~. -]*'

# The members' names, in order
_archive_names()
{
	echo MANIFEST
	sed '1d; s/^[0-9a-f]* [0-9]* //' "$1/MANIFEST" | grep -vx log
}

# archive_tar FOLDER: print the tar of the members that its MANIFEST lists, the same
# bytes wherever and whenever
archive_tar()
{
	_archive_names "$1" | tar -C "$1" --format=ustar --owner=0 --group=0 \
		--numeric-owner --mode=0644 --mtime=@0 --no-recursion \
		--verbatim-files-from -T - -cf -
}

# archive_fill FOLDER LOG HASH: add to what is to be in an archive the log, whose
# hash that is, and MANIFEST
archive_fill()
{
	local dir=$1 log=$2 hash=$3 used name sum

	used=$("$ACKPROOF_BIN/lwlog" convert --json "$log" "$dir/log.zst" | jq .bytes)
	[ ! -f "$dir/trace" ] || zstd -q --rm "$dir/trace"
	{
		echo "$ARCHIVE_FORMAT"
		echo "$hash $used log"
		(cd "$dir" && find . -type f ! -name MANIFEST -printf '%P\n') |
			LC_ALL=C sort | while IFS= read -r name; do
				sum=$(xxhsum -H2 < "$dir/$name" | cut -d ' ' -f 1)
				echo "$sum $(stat -c %s "$dir/$name") $name"
			done
	} > "$dir/MANIFEST"
}

_damaged()
{
	die $EXIT_LOSS "$archive: $*"
}

# What tar lists, to member=(), at=() (the byte it starts at) and bytes=(). There
# may be plain files only, with names that cannot lead anywhere, and each starts
# where the one before ends: tar would skip what is damaged.
_list_members()
{
	local line type name size next=0 status=0 LC_ALL=C
	local pattern='^block ([0-9]+): (.)[^ ]* [^ ]+ +([0-9,]+) [0-9-]+ [0-9:]+ (.*)$'

	tar -tvRP --numeric-owner --quoting-style=escape -f - < "$archive" \
		> "$job/list" 2> "$job/error" || status=$?
	while IFS= read -r line; do
		[[ $line =~ $pattern ]] || continue	# the end
		at+=($((BASH_REMATCH[1] * 512)))
		type=${BASH_REMATCH[2]} size=${BASH_REMATCH[3]} name=${BASH_REMATCH[4]}
		[ "${at[-1]}" -eq $next ] ||
			_damaged "byte $next: no header of a member there, expected one"
		[ "$type" = - ] && [[ $name =~ ^$ARCHIVE_NAME$ ]] ||
			_damaged "member '$name' at byte $next: expected plain files of a capture only"
		[ "$size" -le "$(stat -Lc %s "$archive")" ] ||
			_damaged "member $name at byte $next: $size bytes, more than there are"
		member+=("$name")
		bytes+=("$size")
		next=$((next + 512 + (size + 511) / 512 * 512))
	done < "$job/list"
	[ $status -eq 0 ] ||
		_damaged "byte $next: expected a member or the end: $(sed -n '1s/^tar: //p' "$job/error")"
	[ "${member[0]-}" = MANIFEST ] ||
		_damaged "its first member is '${member[0]-}', expected MANIFEST: not an archive of 'ackproof capture export'"
}

# The manifest must be one, and list what tar does: sets sum=(), and log_sum and
# log_bytes of the unpacked log.
_read_manifest()
{
	local line nr=0 i=1 name what LC_ALL=C

	sum=('') log_sum='' log_bytes=''
	while IFS= read -r line || [ -n "$line" ]; do
		nr=$((nr + 1))
		what="MANIFEST: line $nr is '${line:0:80}', expected"
		if [ $nr -eq 1 ]; then
			[ "$line" = "$ARCHIVE_FORMAT" ] ||
				_damaged "$what '$ARCHIVE_FORMAT'"
			continue
		fi
		[[ $line =~ ^([0-9a-f]{32})\ (0|[1-9][0-9]{0,15})\ (.+)$ ]] ||
			_damaged "$what a hash, a size and a name"
		name=${BASH_REMATCH[3]}
		if [ "$name" = log ]; then
			log_sum=${BASH_REMATCH[1]} log_bytes=${BASH_REMATCH[2]}
			continue
		fi
		[ $i -lt ${#member[@]} ] ||
			_damaged "no member $name, and none behind ${member[-1]} at byte ${at[-1]}: cut?"
		[ "$name" = "${member[i]}" ] ||
			_damaged "$what ${member[i]}, as tar lists them"
		[ "${BASH_REMATCH[2]}" = "${bytes[i]}" ] ||
			_damaged "member $name at byte ${at[i]}: ${bytes[i]} bytes, expected ${BASH_REMATCH[2]}"
		sum+=("${BASH_REMATCH[1]}")
		i=$((i + 1))
	done < "$dir/MANIFEST"
	[ $i -eq ${#member[@]} ] ||
		_damaged "member ${member[i]} at byte ${at[i]}: not in MANIFEST"
	for name in capture.json log.zst; do
		[ -f "$dir/$name" ] || _damaged "no member $name"
	done
	[ -n "$log_sum" ] || _damaged "MANIFEST: no log in it"
}

_check_members()
{
	local i got

	for ((i = 1; i < ${#member[@]}; i++)); do
		got=$(xxhsum -H2 < "$dir/${member[i]}" | cut -d ' ' -f 1)
		[ "$got" = "${sum[i]}" ] ||
			_damaged "member ${member[i]} at byte ${at[i]}: hash $got, expected ${sum[i]}"
	done
	got=$(archive_tar "$dir" | LC_ALL=C cmp - "$archive" 2>&1) ||
		_damaged "its members are whole, and the rest is not: $(tr '\n' ' ' <<< "$got" |
			sed -E 's/.* differ: (byte|char) ([0-9]+).*/byte \2 is another/; s/^cmp: EOF on - .*/there is more behind its end/; s/^cmp: EOF on .* after byte ([0-9]+).*/cut at byte \1/')"
}

# What is packed as it was, and the capture as a whole: all that an audit needs
_unpack_members()
{
	local got

	"$ACKPROOF_BIN/lwlog" convert "$dir/log.zst" "$dir/log" > /dev/null 2> "$job/error" ||
		_damaged "member $(sed "1s,^lwlog: $dir/,,; q" "$job/error")"
	got=$(stat -c %s "$dir/log")
	[ "$got" = "$log_bytes" ] ||
		_damaged "member log.zst: unpacks to $got bytes, expected $log_bytes"
	got=$(capture_hash "$dir" 2> "$job/error") ||
		_damaged "$(sed "1s,^lwaudit: $dir/,,; q" "$job/error")"
	[ "$got" = "$log_sum" ] ||
		_damaged "member log.zst: unpacks to a log with hash $got, expected $log_sum"
	rm "$dir/log.zst" "$dir/MANIFEST"
	[ ! -f "$dir/trace.zst" ] || zstd -qd --rm "$dir/trace.zst" 2> "$job/error" ||
		_damaged "member $(sed "1s,^zstd: $dir/,,; q" "$job/error")"
}

# archive_unpack FILE FOLDER: make FOLDER, in the job's, the capture that FILE is
# an archive of. Its kernel, if it is there, is in kernel/.
archive_unpack()
{
	local archive=$1 dir=$2 member=() at=() bytes=() sum=() log_sum log_bytes

	_list_members
	mkdir "$dir"
	tar -xf - -C "$dir" --no-same-owner --no-same-permissions \
		< "$archive" 2> "$job/error" ||
		die $EXIT_CANNOT "$archive: cannot unpack: $(sed -n '1s/^tar: //p' "$job/error")"
	_read_manifest
	_check_members
	_unpack_members
}
