# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Building variants. A variant is a file in kernel-patches/variants with lines
# of a word and its value:
#
#	series	6.12			all patches of kernel-patches/6.12/series
#	patch	mutants/x.patch		one more
#	config	x.config		a fragment, besides those of every variant
#	about	what it is for
#
# The architecture is the engine's. The config is allnoconfig, and over it
# common.config, what the architecture needs, and what the variant has of its own.
#
# One source tree per kernel source is kept patched and built in place, so
# that going from one variant to the next compiles what differs. The tree is
# not patched step by step: the wanted contents of all files that any patch
# touches are worked out aside, and then only the files that differ are
# replaced. So a killed build leaves nothing that the next one does not mend.
#
#	build/kernel/SOURCE/tree	the source
#	build/kernel/SOURCE/trees	the git trees that this is of, if it is from git
#	build/kernel/SOURCE/orig	what the touched files were
#	build/kernel/SOURCE/touched	their names
#	build/kernel/SOURCE/named	those that the patches in place name
#	build/kernel/SOURCE/obj-KEY	objects, per arch and config
#	build/kernel/out/HASH		built: linux, config, patches/, variant.json; of
#					this machine's own kernel only the last, and
#					its config if it tells

# shellcheck source=harness/lib/engine.sh
. "$ACKPROOF_ROOT/harness/lib/engine.sh"

KERNEL_PACKAGE=linux-source-6.12
KERNEL_TARBALL=${ACKPROOF_TARBALL:-/usr/src/$KERNEL_PACKAGE.tar.xz}

# What the user put on the command line, for all variants of this run
kernel_source='' kernel_commit='' kernel_series='' kernel_jobs=''
kernel_patches=()
kernel_args=()		# the same, for another command

# Whether folder $1 is an unpacked kernel
_is_kernel()
{
	[ -f "$1/Makefile" ] && [ -r "$1/Makefile" ] && [ -f "$1/Kconfig" ]
}

# Take one of the options that every command that builds kernels has.
# Returns 1 if $1 is none of them; they take one argument each.
kernel_option()
{
	case $1 in
	--source)
		_is_kernel "$2" || [ -e "$2/.git" ] || [ -f "$2/HEAD" ] ||
			die $EXIT_USAGE "--source: '$2' is not a kernel source tree that can be read"
		kernel_source=$(cd "$2" && pwd -P)
		kernel_args+=("$1" "$kernel_source")
		;;
	--commit)
		kernel_commit=$2
		kernel_args+=("$1" "$2")
		;;
	--series)
		[ -d "$2" ] || die $EXIT_USAGE "--series: '$2' is not a folder"
		kernel_series=$(cd "$2" && pwd -P)
		kernel_args+=("$1" "$kernel_series")
		;;
	--patch)
		[ -r "$2" ] && [ -f "$2" ] ||
			die $EXIT_USAGE "--patch: '$2' is not a file that can be read"
		kernel_patches+=("$(realpath "$2")")
		kernel_args+=("$1" "$(realpath "$2")")
		;;
	*)
		return 1
		;;
	esac
}

KERNEL_OPTIONS_HELP='      --source DIR   build this kernel tree instead of the packaged one
      --commit REV   that commit of the git tree --source, whatever is checked out
      --series DIR   patches (format-patch or quilt) in place of our series
      --patch FILE   one more patch on top; may be given more than once'

kernel_variants()
{
	local file

	for file in "$PATCHES"/variants/*; do
		echo "${file##*/}"
	done
}

# Read variant $1 into about, config=() and patches=(), and set arch
kernel_read_variant()
{
	local file=$PATCHES/variants/$1 word value line

	[[ $1 =~ ^[A-Za-z0-9._-]+$ ]] && [ -f "$file" ] ||
		die $EXIT_USAGE "unknown variant '$1'; there are: $(kernel_variants | xargs)"
	arch=$(engine_arch) about='' patches=()
	config=("$PATCHES/config/common.config" "$PATCHES/config/$arch.config")
	while read -r word value; do
		case $word in
		''|'#'*) ;;
		about) about=$value ;;
		config) config+=("$PATCHES/config/$value") ;;
		patch) patches+=("$PATCHES/$value") ;;
		series)
			while read -r line; do
				patches+=("$PATCHES/$value/$line")
			done < "$PATCHES/$value/series"
			;;
		*) die $EXIT_USAGE "$file: unknown word '$word'" ;;
		esac
	done < "$file"
}

# The patches of folder $1, in order: as its series file says, or by name
_series_of()
{
	local dir=$1 line strip file

	if [ -f "$dir/series" ]; then
		while read -r line strip _ || [ -n "$line" ]; do
			case $line in ''|'#'*) continue ;; esac
			case $strip in ''|'#'*|-p1) ;;
			*) die $EXIT_USAGE "$dir/series: '$line $strip', expected patches for -p1" ;;
			esac
			[ -f "$dir/$line" ] && [ -r "$dir/$line" ] ||
				die $EXIT_USAGE "$dir/series: cannot read $line"
			echo "$dir/$line"
		done < "$dir/series"
		return
	fi
	for file in "$dir"/*.patch "$dir"/*.diff; do
		# a cover letter has no diff
		[ -r "$file" ] && grep -q '^+++ ' "$file" || continue
		echo "$file"
	done
}

# Put the user's series in the place of ours, and the user's patches on top.
# Our dm-log-writes fix stays unless theirs brings one: it is not what is under
# test, and without it a capture shows losses that are none. A variant that has
# nothing else of our series is a control: it stays as it is.
_user_patches()
{
	local names theirs=() all=() patch placed=''
	local fix='^\+\+\+ [^/]+/drivers/md/dm-log-writes\.c'

	if [ -n "$kernel_series" ]; then
		# by way of a variable: what fails in <(...) is not seen
		names=$(_series_of "$kernel_series")
		# only a series file can say that there are none
		[ -n "$names" ] || [ -f "$kernel_series/series" ] ||
			die $EXIT_USAGE "--series: no patches in $kernel_series"
		[ -z "$names" ] || mapfile -t theirs <<< "$names"
		for patch in "${patches[@]}"; do
			case $patch in
			"$PATCHES"/6.*)
				if grep -qE "$fix" "$patch"; then
					grep -qsE "$fix" "${theirs[@]}" < /dev/null ||
						all+=("$patch")
					continue
				fi
				[ -n "$placed" ] || all+=("${theirs[@]}")
				placed=1
				;;
			*)
				all+=("$patch")
				;;
			esac
		done
		[ -z "$placed" ] || patches=("${all[@]}")
	fi
	patches+=("${kernel_patches[@]}")
}

# Changes whenever the user's source does
_source_state()
{
	(cd "$kernel_source" &&
		find . -path ./.git -prune -o \( -type f -o -type l \) \
			-printf '%P %m %s %T@ %l\n') |
		LC_ALL=C sort | sha256sum | cut -c 1-32
}

# Where the source comes from: sets source_dir; source_id, which changes
# whenever the source does; and source_name.
_find_source()
{
	if [ -n "$kernel_commit" ]; then
		_find_commit
		return
	fi
	if [ -n "$kernel_source" ]; then
		_is_kernel "$kernel_source" ||
			die $EXIT_USAGE "--source: '$kernel_source' has no kernel checked out; see --commit"
		source_dir=$ACKPROOF_BUILD/kernel/dir-$(printf '%s' "$kernel_source" | sha256sum | cut -c 1-12)
		source_name=$kernel_source
		source_id=$(_source_state) ||
			die $EXIT_CANNOT "cannot read all of $kernel_source"
		return
	fi
	[ -r "$KERNEL_TARBALL" ] ||
		die $EXIT_CANNOT "$KERNEL_TARBALL is missing: run 'make setup', or apt-get install $KERNEL_PACKAGE"
	source_id=''
	[ "$KERNEL_TARBALL" != "/usr/src/$KERNEL_PACKAGE.tar.xz" ] ||
		source_id=$(dpkg-query -W -f '${Version}' "$KERNEL_PACKAGE" 2> /dev/null) || :
	source_name="$KERNEL_PACKAGE $source_id"
	if [ -z "$source_id" ]; then
		# another one, or not from the package
		source_id=$(stat -c '%s-%.Y' "$KERNEL_TARBALL")-$(realpath "$KERNEL_TARBALL" | sha256sum | cut -c 1-12)
		source_name=$KERNEL_TARBALL
	fi
	source_dir=$ACKPROOF_BUILD/kernel/$KERNEL_PACKAGE-${source_id//[^A-Za-z0-9.+-]/_}
}

# The user's git, where nothing is written: no lock, no hook, no index of theirs,
# and nothing of the environment that a hook or a bisection of theirs has made.
_git()
{
	(
		# shellcheck disable=SC2046 # names of variables
		unset $(git rev-parse --local-env-vars)
		[ -z "${git_index-}" ] || export GIT_INDEX_FILE=$git_index
		git -c core.quotePath=false -c core.hooksPath=/dev/null \
			-c core.splitIndex=false -c core.sparseCheckout=false \
			-c core.fsmonitor=false "$@"
	)
}

# The same as _find_source, for --commit; sets commit_id, and git_dir, too
_find_commit()
{
	local why

	need git git
	[ -n "$kernel_source" ] ||
		die $EXIT_USAGE "--commit: needs --source, the git tree that it is in"
	why=$(_git -C "$kernel_source" rev-parse --git-common-dir 2>&1) ||
		die $EXIT_USAGE "--source: '$kernel_source' is not a git tree: ${why#fatal: }"
	git_dir=$(cd "$kernel_source" && realpath "$why")
	commit_id=$(_git -C "$kernel_source" rev-parse -q --verify \
		--end-of-options "$kernel_commit^{commit}" 2> /dev/null) ||
		die $EXIT_USAGE "--commit: there is no commit '$kernel_commit' in $kernel_source"
	source_id=$(_git --git-dir="$git_dir" rev-parse "$commit_id^{tree}")
	_git --git-dir="$git_dir" cat-file -e "$source_id:Kconfig" 2> /dev/null ||
		die $EXIT_USAGE "--commit: '$kernel_commit' is not of a kernel tree: it has no Kconfig"
	source_dir=$ACKPROOF_BUILD/kernel/git-$(printf '%s' "$git_dir" | sha256sum | cut -c 1-12)
	source_name=$kernel_source
}

# What differs between the wanted tree and those that the files may be of
_differing()
{
	local id

	while read -r id; do
		_git --git-dir="$git_dir" diff-tree -r --name-only --no-renames \
			"$id" "$source_id" || return
	done < "$source_dir/trees" | LC_ALL=C sort -u
}

# Of the files that stdin names: write those that the wanted tree has to folder
# $1, and remove the others there
_write_files()
{
	local dir=$1 git_index=$source_dir/index

	cat > "$source_dir/part"
	LC_ALL=C comm -23 "$source_dir/part" "$source_dir/names" |
		(cd "$dir" && while IFS= read -r file; do
			rm -f "./$file"
			# a file may come in the place of its folder
			rmdir -p --ignore-fail-on-non-empty "./${file%/*}" \
				2> /dev/null || :
		done)
	LC_ALL=C comm -12 "$source_dir/part" "$source_dir/names" |
		_git --git-dir="$git_dir" --work-tree="$source_dir/tree" \
			checkout-index -f --prefix="$dir/" --stdin ||
		die $EXIT_CANNOT "cannot write commit $commit_id to $dir"
}

# Make the tree what the commit holds, writing only what differs: what patches
# have touched is in orig, and their new contents follow from there. The file
# "trees" gets a line before anything is written, and loses the older ones when
# all is, so after a kill it names all that the files can be of. Sets config_id.
_checkout_commit()
{
	local git_index=$source_dir/index

	if ! _differing > "$source_dir/differ" 2> /dev/null; then
		# nothing there yet, or of a tree that git has dropped
		rm -rf "$source_dir"/{tree,orig,touched}
		_git --git-dir="$git_dir" hash-object -t tree /dev/null > "$source_dir/trees"
		_differing > "$source_dir/differ" ||
			die $EXIT_CANNOT "cannot read commit $commit_id of $kernel_source"
	fi
	mkdir -p "$source_dir/tree" "$source_dir/orig"
	touch "$source_dir/touched"
	if [ -s "$source_dir/differ" ]; then
		note "checking out $commit_id"
		echo "$source_id" >> "$source_dir/trees"
		_git --git-dir="$git_dir" read-tree "$source_id"
		_git --git-dir="$git_dir" ls-files | LC_ALL=C sort \
			> "$source_dir/names"
		LC_ALL=C sort "$source_dir/touched" > "$source_dir/ours"
		LC_ALL=C comm -12 "$source_dir/differ" "$source_dir/ours" |
			_write_files "$source_dir/orig"
		LC_ALL=C comm -23 "$source_dir/differ" "$source_dir/ours" |
			_write_files "$source_dir/tree"
	fi
	replace_file "$source_dir/trees" echo "$source_id"
	config_id=$(_git --git-dir="$git_dir" ls-tree -r "$source_id" |
		grep -E $'[\t/](Kconfig|Makefile)[^/]*$|\tscripts/' | sha256sum)
}

# What the files that the source was built to do not belong to it
_copy_tree()
{
	note "copying $kernel_source"
	mkdir -p "$source_dir/tree"
	# by contents, with new times: a file that changes must be compiled again
	rsync -rlpc --delete --exclude=/.git --exclude='*.o' --exclude='*.a' \
		--exclude='*.ko' --exclude='.*.cmd' --exclude='.*.d' \
		--exclude=/.config --exclude=/include/config \
		--exclude='/include/generated' --exclude='/arch/*/include/generated' \
		--exclude=/vmlinux "$kernel_source/" "$source_dir/tree/" ||
		die $EXIT_CANNOT "cannot copy $kernel_source"
	[ "$(_source_state)" = "$source_id" ] ||
		die $EXIT_CANNOT "$kernel_source changed while it was copied: build again"
	rm -rf "$source_dir/orig" "$source_dir/touched"
}

_prepare_tree()
{
	mkdir -p "$source_dir"
	if [ -n "$kernel_commit" ]; then
		_checkout_commit
	elif [ -n "$kernel_source" ]; then
		_copy_tree
	elif [ ! -d "$source_dir/tree" ]; then
		note "unpacking $KERNEL_TARBALL"
		rm -rf "$source_dir/tree.new"
		mkdir "$source_dir/tree.new"
		tar -xf "$KERNEL_TARBALL" -C "$source_dir/tree.new" --strip-components=1 &&
			[ -f "$source_dir/tree.new/Kconfig" ] ||
			die $EXIT_CANNOT "cannot unpack $KERNEL_TARBALL"
		mv "$source_dir/tree.new" "$source_dir/tree"
	fi
	touch "$source_dir/touched"
}

# The files that the patches name, below a folder of any name: quilt's are not
# called a and b
_patched_files()
{
	[ $# -gt 0 ] || return 0
	sed -nE -e 's,^(---|\+\+\+) [^/[:space:]]+/([^[:space:]]+).*,\2,p' \
		-e 's,^rename (from|to) ,,p' "$@" | LC_ALL=C sort -u
}

# Copy file $1 with its mode, but with the time of now
_put()
{
	mkdir -p "${2%/*}"
	cp --preserve=mode "$1" "$2"
}

# What did not apply, and in which file, from patch(1)'s output
_rejects()
{
	awk '/^patching file / { file = $3 ": "; next }
		/succeeded|^Perhaps you|^The text leading|^---|^[0-9]+ out of/ { next }
		n++ < 4 { print "  " file $0 }'
}

# What the machine says, and no source can make a compiler say
HOST_FAULTS='No space left on device|Disk quota exceeded|Cannot allocate memory|virtual memory exhausted|Read-only file system|Too many open files|Input/output error|^ccache: error|^make.*[: ](Killed|Terminated)$|(Killed|Terminated) signal terminated program|cannot execute .*: (execvp|posix_spawn)|: fork: |^([^ ]*/)?(ba|da)?sh: (line )?[0-9]+: [^/ ]+: (command )?not found|^make.*: [^/ ]+: (No such file or directory|Permission denied)$'

# The exit status for what failed with the output on stdin: it is the source's
# fault unless the machine's
_fault()
{
	if grep -qE "$HOST_FAULTS"; then
		echo $EXIT_CANNOT
	else
		echo $EXIT_UNTESTABLE
	fi
}

# Whether patch $1 is one of our series that the user's source, in folder $2, has
# already
_contained()
{
	[ -n "$kernel_source" ] && [[ $1 == "$PATCHES"/6.* ]] &&
		patch -d "$2" -p1 -R -F 0 -f --dry-run < "$1" > /dev/null 2>&1
}

# Make the tree what the source with $@ applied is. Sets patches to those that
# were.
_patch_tree()
{
	local tree=$source_dir/tree orig=$source_dir/orig want=$source_dir/want
	local named=$source_dir/named file patch out

	rm -rf "$want"
	mkdir -p "$want" "$orig"
	_patched_files "$@" > "$named"
	while read -r file; do
		[[ /$file/ != */../* ]] || die $EXIT_USAGE "a patch reaches outside the tree: $file"
		if ! grep -qxF -e "$file" "$source_dir/touched"; then
			if [ -e "$tree/$file" ]; then
				_put "$tree/$file" "$orig/$file"
			fi
			echo "$file" >> "$source_dir/touched"
		fi
		[ ! -e "$orig/$file" ] || _put "$orig/$file" "$want/$file"
	done < "$named"

	patches=()
	for patch; do
		! _contained "$patch" "$want" || continue
		patches+=("$patch")
		out=$(patch -d "$want" -p1 -f --no-backup-if-mismatch -r - < "$patch" 2>&1) ||
			die "$(_fault <<< "$out")" "$patch does not apply:"$'\n'"$(_rejects <<< "$out")"
	done

	while read -r file; do
		if [ -e "$want/$file" ]; then
			patch=$want/$file
		elif [ -e "$orig/$file" ] && ! grep -qxF -e "$file" "$named"; then
			patch=$orig/$file
		else
			rm -f "$tree/$file"
			continue
		fi
		cmp -s "$patch" "$tree/$file" ||
			_put "$patch" "$tree/$file"
	done < "$source_dir/touched"
}

# What a make around this one was told is not for the kernel's, and neither are
# flags that nothing would record. It may not ask, either. Objects come from the
# cache where another tree or variant has compiled the same: paths count from the
# object folder, so that trees look alike.
_make()
{
	env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u MAKELEVEL -u KCFLAGS \
		-u KCPPFLAGS -u KAFLAGS -u LOCALVERSION -u KBUILD_OUTPUT \
		-u KBUILD_EXTMOD -u KCONFIG_CONFIG \
		CCACHE_DIR="$ACKPROOF_BUILD/ccache" CCACHE_MAXSIZE=2G \
		CCACHE_BASEDIR="$ACKPROOF_BUILD/kernel" CCACHE_NOHASHDIR=1 \
		make -s -C "$source_dir/tree" O="$obj" ARCH="$arch" \
		CC='ccache gcc' HOSTCC='ccache gcc' \
		KBUILD_KCONFIG="$obj/Kconfig.ackproof" KBUILD_BUILD_USER=ackproof \
		KBUILD_BUILD_HOST=ackproof KBUILD_BUILD_VERSION=1 \
		KBUILD_BUILD_TIMESTAMP=@0 "$@" < /dev/null
}

# Our own symbols come behind the tree's: see kernel-patches/config/*.Kconfig
_kconfig()
{
	cat "$source_dir/tree/Kconfig" || return
	cat "$PATCHES/config/$arch.Kconfig" 2> /dev/null || :
}

# Files that a killed build was writing may be cut, and yet look up to date: all
# that is newer than the mark of a build that did not end must go.
_begin_objects()
{
	mkdir -p "$obj"
	if [ -e "$obj/building" ]; then
		find "$obj" -type f -newer "$obj/building" -delete
		rm -f "$obj/inputs.done"
	fi
	touch "$obj/building"
}

# All that a config follows from
_config_inputs()
{
	local file

	cat "$obj/fragment" "$obj/Kconfig.ackproof"
	echo "# $config_id"
	while read -r file; do
		case ${file##*/} in
		Kconfig*)
			[ ! -f "$source_dir/tree/$file" ] ||
				cat "$source_dir/tree/$file"
			;;
		esac
	done < "$source_dir/touched"
}

_configure()
{
	local line symbol

	replace_file "$obj/Kconfig.ackproof.want" _kconfig
	cmp -s "$obj/Kconfig.ackproof.want" "$obj/Kconfig.ackproof" ||
		cp "$obj/Kconfig.ackproof.want" "$obj/Kconfig.ackproof"
	cat "${config[@]}" > "$obj/fragment"
	_config_inputs > "$obj/inputs"
	if ! cmp -s "$obj/inputs" "$obj/inputs.done"; then
		_make KCONFIG_ALLCONFIG="$obj/fragment" allnoconfig \
			> "$obj/build.log" 2>&1 ||
			die "$(_fault < "$obj/build.log")" "cannot configure the kernel: $(grep -m 1 -iE 'error|invalid|\*\*\*' "$obj/build.log"); see $obj/build.log"
		mv "$obj/inputs" "$obj/inputs.done"
	fi
	while read -r line; do
		case $line in
		CONFIG_*=n)
			symbol=${line%%=*}
			! grep -q "^$symbol=" "$obj/.config" ||
				die $EXIT_UNTESTABLE "$symbol did not stick: wanted off, got '$(grep "^$symbol=" "$obj/.config")'"
			;;
		CONFIG_*)
			symbol=${line%%=*}
			grep -qxF "$line" "$obj/.config" ||
				die $EXIT_UNTESTABLE "$symbol did not stick: wanted '$line', got '$(grep -E "^(# )?${symbol}[= ]" "$obj/.config" || echo nothing)'"
			;;
		esac
	done < "$obj/fragment"
}

_compile()
{
	local image target jobs failed='' why

	jobs=${kernel_jobs:-$(nproc)}
	case $arch in
	um) target=linux image=linux ;;
	x86_64) target=bzImage image=arch/x86/boot/bzImage ;;
	esac
	_make -j "$jobs" "$target" > "$obj/build.log" 2>&1 || failed=1
	rm "$obj/building"	# a make that has failed leaves nothing cut
	if [ -n "$failed" ]; then
		why=$(grep -m 1 -E '(error|Error|undefined reference)[: ]' "$obj/build.log" ||
			tail -n 1 "$obj/build.log")
		die "$(_fault < "$obj/build.log")" "variant $variant does not build: ${why//"$source_dir/tree/"/}; see $obj/build.log"
	fi
	cp "$obj/$image" "$out.new/linux"
}

_describe_patches()
{
	local patch

	for patch in "${patches[@]}"; do
		sha256sum < "$patch" |
			jq -R --arg name "${patch##*/}" '{name: $name, sha256: split(" ")[0]}'
	done | jq -s .
}

# The commit's id, and how git describes it, or null
_describe_commit()
{
	[ -n "$commit_id" ] || { echo null; return; }
	jq -n --arg id "$commit_id" \
		--arg describe "$(_git --git-dir="$git_dir" describe --tags --always "$commit_id")" \
		'{id: $id, describe: $describe}'
}

_describe()
{
	jq -n --arg variant "$variant" --arg hash "$hash" --arg arch "$arch" \
		--arg version "$(_make kernelversion)" \
		--arg source "$source_name" --argjson commit "$(_describe_commit)" \
		--arg config "$(sha256sum < "$obj/.config" | cut -d ' ' -f 1)" \
		--arg compiler "$(gcc --version | head -n 1)" \
		--argjson patches "$(_describe_patches)" \
		'{variant: $variant, hash: $hash, version: $version, arch: $arch,
		  source: $source, commit: $commit, patches: $patches,
		  config_sha256: $config,
		  compiler: $compiler}'
}

# Wait for the tree, which other builds share. It may be removed meanwhile.
_lock_source()
{
	while :; do
		mkdir -p "$source_dir"
		exec {kernel_lock}> "$source_dir/lock"
		flock "$kernel_lock"
		[ ! "/proc/$BASHPID/fd/$kernel_lock" -ef "$source_dir/lock" ] || return 0
		exec {kernel_lock}>&-
	done
}

# What this machine runs on: sets kernel_dir to where that is told, as kernel_build
# does. Its hash changes with all of its name, so with each build, and its config.
_running_kernel()
{
	local hash what settings=''

	what=$(uname -srvm)
	[ ! -r /proc/config.gz ] || settings=$(zcat /proc/config.gz)
	hash=$(printf '%s\n' "$what" "$settings" | sha256sum | cut -c 1-16)
	kernel_dir=$ACKPROOF_BUILD/kernel/out/$hash
	[ ! -f "$kernel_dir/variant.json" ] || return 0
	rm -rf "$kernel_dir.new"
	mkdir -p "$kernel_dir.new"
	[ -z "$settings" ] || printf '%s\n' "$settings" > "$kernel_dir.new/config"
	jq -n --arg hash "$hash" --arg what "$what" --arg version "$(uname -r)" \
		--arg arch "$(uname -m)" \
		--arg config "$([ -z "$settings" ] || sha256sum < "$kernel_dir.new/config" | cut -d ' ' -f 1)" \
		'{variant: "local", hash: $hash, version: $version, arch: $arch,
		  source: "running", uname: $what, commit: null, patches: [],
		  config_sha256: (if $config == "" then null else $config end)}' \
		> "$kernel_dir.new/variant.json"
	rm -rf "$kernel_dir"
	mv "$kernel_dir.new" "$kernel_dir"
}

# Build variant $1 for the engine unless that was done before. Sets kernel_dir to
# the folder with the kernel, its config and variant.json. Of an engine that boots
# none, it is this machine's own kernel.
kernel_build()
{
	local variant=$1 arch about config patches source_dir source_id source_name
	local commit_id='' config_id git_dir
	local hash obj out file name n=0 started=$SECONDS

	if [ -z "$(engine_arch)" ]; then
		_running_kernel
		return
	fi
	need gcc gcc; need make make
	kernel_read_variant "$variant"
	_user_patches
	for file in "${patches[@]}" "${config[@]}"; do
		[ -r "$file" ] || die $EXIT_CANNOT "variant $variant: cannot read $file"
	done
	_find_source
	hash=$({
		echo "$source_id $arch"
		gcc --version | head -n 1
		_sum_files "${patches[@]}" -- "${config[@]}" "$PATCHES/config/$arch.Kconfig"
	} | sha256sum | cut -c 1-16)
	out=$ACKPROOF_BUILD/kernel/out/$hash
	kernel_dir=$out
	[ ! -f "$out/variant.json" ] || return 0

	need patch patch; need flex flex; need bison bison; need bc bc
	need rsync rsync; need ccache ccache
	# the kernel's own message comes late, and names no package
	[ $arch != x86_64 ] || gcc -E -include gelf.h - < /dev/null > /dev/null 2>&1 ||
		die $EXIT_CANNOT "libelf's headers are not installed: run 'make setup', or apt-get install libelf-dev"
	plain_path "$ACKPROOF_BUILD"
	note "building kernel $variant"
	_lock_source
	if [ -f "$out/variant.json" ]; then	# that other one has built it
		exec {kernel_lock}>&-
		return
	fi
	config_id=$source_id	# or what is less, for a commit
	_prepare_tree
	_patch_tree "${patches[@]}"
	obj=$source_dir/obj-$arch-$(cat "${config[@]}" | sha256sum | cut -c 1-8)
	rm -rf "$out.new"
	mkdir -p "$out.new/patches"
	_begin_objects
	_configure
	_compile
	cp "$obj/.config" "$out.new/config"
	for file in "${patches[@]}"; do
		name=${file##*/}
		n=$((n + 1))
		[ ! -e "$out.new/patches/$name" ] || name=$n-$name
		cp "$file" "$out.new/patches/$name"
	done
	_describe > "$out.new/variant.json"
	rm -rf "$out"
	mv "$out.new" "$out"
	exec {kernel_lock}>&-
	note "built kernel $variant in $((SECONDS - started)) s"
}

# Contents of files, with "--" between groups kept as it is
_sum_files()
{
	local file

	for file; do
		if [ "$file" = -- ]; then
			echo --
		elif [ -e "$file" ]; then
			sha256sum < "$file"
		fi
	done
}
