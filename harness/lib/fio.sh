# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Files of fio jobs that run beside the writers.

# Keys that would lead a job away from the folder that it is given: to the files of
# the writers, whose blocks it would overwrite
FIO_REFUSED='directory|opendir|filename_format|include|exec_prerun|exec_postrun|exec_program'

# fio_check WHAT FILE: a file of jobs that stay where they are put
fio_check()
{
	local line

	[ -f "$2" ] && [ -r "$2" ] ||
		die $EXIT_USAGE "$1: '$2' is not a file of fio jobs that can be read"
	grep -q '^\[' "$2" || die $EXIT_USAGE "$1: $2: no jobs"
	line=$(grep -nm 1 -E "^[[:space:]]*($FIO_REFUSED)([[:space:]]*=|[[:space:]]|\$)|^[[:space:]]*filename[[:space:]]*=.*/|^[[:space:]]*ioengine[[:space:]]*=[[:space:]]*exec" "$2") || return 0
	die $EXIT_USAGE "$1: $2: line ${line%%:*}: '${line#*:}' could lead to other files than its own"
}
