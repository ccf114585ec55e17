#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards harness/engine/supervise.c: a command's status comes through, and
# nothing of a command outlives it, its time, or the one who started it.

bats_require_minimum_version 1.5.0

setup()
{
	top=$BATS_TEST_DIRNAME/../..
	supervise=$top/${B:-build}/bin/supervise
	cd "$BATS_TEST_TMPDIR" || return
	# A process that left its session and its parent. $0 is its pid's file.
	# shellcheck disable=SC2016 # expanded where it runs
	orphan='setsid -f sh -c '\''echo $$ > "$0".new && mv "$0".new "$0" && exec sleep 600'\'' "$0"
		until [ -e "$0" ]; do sleep 0.02; done'
}

teardown()
{
	local file pid

	# a test that failed leaves what it started
	for file in "$BATS_TEST_TMPDIR"/*.pid; do
		[ -e "$file" ] || continue
		pid=$(cat "$file")
		kill -KILL "$pid" 2> /dev/null || :
	done
}

# Dead within 5 seconds, reaped or not
_gone()
{
	local i state

	for ((i = 0; i < 250; i++)); do
		state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" \
			2> /dev/null) || return 0
		[ "$state" != Z ] || return 0
		sleep 0.02
	done
	echo "process $1 is still there, in state $state"
	return 1
}

_wait_for()
{
	local i

	for ((i = 0; i < 250; i++)); do
		[ ! -s "$1" ] || return 0
		sleep 0.02
	done
	echo "no $1"
	return 1
}

@test "the command's exit status is passed through" {
	run -0 "$supervise" true
	run -3 "$supervise" sh -c 'exit 3'
}

@test "a signal is 128 + its number" {
	# shellcheck disable=SC2016 # the inner shell's own pid
	run -137 "$supervise" sh -c 'kill -KILL $$'
	# shellcheck disable=SC2016
	run -134 "$supervise" sh -c 'ulimit -c 0; kill -ABRT $$'
}

@test "options after the command are the command's" {
	run -0 "$supervise" echo -t 1
	[ "$output" = "-t 1" ]
}

@test "a command that cannot be run is 127" {
	run -127 "$supervise" ./none
	[ "$output" = "supervise: cannot run ./none: No such file or directory" ]
}

@test "the timeout is 124, and kills" {
	SECONDS=0
	run -124 "$supervise" -t 1 sh -c 'echo $$ > a.pid; exec sleep 600'
	[ "$SECONDS" -le 5 ]
	_gone "$(cat a.pid)"
}

@test "within the timeout, the status is the command's" {
	run -4 "$supervise" -t 60 sh -c 'exit 4'
}

@test "an orphan in a session of its own does not outlive the command" {
	run -5 "$supervise" sh -c "$orphan; exit 5" a.pid
	_gone "$(cat a.pid)"
}

@test "nor the timeout" {
	run -124 "$supervise" -t 1 sh -c "$orphan; exec sleep 600" a.pid
	_gone "$(cat a.pid)"
}

@test "nor its supervisor's SIGTERM" {
	"$supervise" sh -c "$orphan; exec sleep 600" a.pid &
	_wait_for a.pid
	kill -TERM $!
	# not by run, whose subshell cannot wait for it
	status=0
	wait $! || status=$?
	[ "$status" -eq 143 ]
	_gone "$(cat a.pid)"
}

@test "nor a kill -9 of its supervisor's parent" {
	# The parent must stay a shell: exec'd away, it would be the supervisor.
	# shellcheck disable=SC2016 # expanded by the parent
	bash -c '"$1" sh -c "$2; echo \$\$ > b.pid; exec sleep 600" a.pid &
		echo $! > supervise.pid
		wait' parent "$supervise" "$orphan" &
	_wait_for a.pid
	_wait_for b.pid
	_wait_for supervise.pid
	kill -KILL $!
	_gone "$(cat a.pid)"
	_gone "$(cat b.pid)"
	_gone "$(cat supervise.pid)"
}

@test "the command goes with a supervisor that is killed" {
	"$supervise" sh -c 'echo $$ > a.pid; exec sleep 600' &
	_wait_for a.pid
	kill -KILL $!
	_gone "$(cat a.pid)"
}

@test "-c pins to one core, counted around" {
	local n first again

	n=$(nproc)
	first=$("$supervise" -c 0 grep Cpus_allowed_list: /proc/self/status)
	again=$("$supervise" -c "$n" grep Cpus_allowed_list: /proc/self/status)
	[[ $first =~ ^Cpus_allowed_list:.[0-9]+$ ]]
	[ "$first" = "$again" ]
	if [ "$n" -gt 1 ]; then
		again=$("$supervise" -c 1 grep Cpus_allowed_list: \
			/proc/self/status)
		[[ $again =~ ^Cpus_allowed_list:.[0-9]+$ ]]
		[ "$first" != "$again" ]
	fi
}

@test "-c counts the cores that this process may use" {
	local last cpus

	last=$(taskset -cp $$ | grep -o '[0-9]*$')
	cpus=$(taskset -c "$last" "$supervise" -c 0 \
	       grep Cpus_allowed_list: /proc/self/status)
	[ "$cpus" = "Cpus_allowed_list:	$last" ]
}

@test "-g makes a process group of its own" {
	local own

	# shellcheck disable=SC2016 # the command's own
	own=$("$supervise" -g sh -c 'ps -o pgid= -p $$; ps -o ppid= -p $$')
	[ "$(echo "$own" | sort -u | wc -l)" = 1 ]
	# shellcheck disable=SC2016
	own=$("$supervise" sh -c 'ps -o pgid= -p $$; ps -o ppid= -p $$')
	[ "$(echo "$own" | sort -u | wc -l)" = 2 ]
}

@test "a parent that ignores SIGCHLD changes nothing" {
	run -6 timeout -s KILL 10 env --ignore-signal=CHLD \
		"$supervise" sh -c 'exit 6'
}

@test "usage" {
	run -2 "$supervise"
	[ "$output" = "supervise: expected a command; see supervise --help" ]
	run -2 "$supervise" -t 0 true
	[ "$output" = "supervise: --timeout: '0' is not a number from 1 to 2147483647" ]
	run -2 "$supervise" -c x true
	run -2 "$supervise" --none true
	run -0 "$supervise" --help
	[ "${lines[0]}" = "Usage: supervise [OPTION]... COMMAND [ARG]..." ]
}

@test "--cpus: so many cores, and all if there are no more" {
	local all

	all=$(nproc)
	[ "$all" -ge 2 ] || skip "needs two cores"
	[ "$("$supervise" --cpu 0 --cpus 2 nproc)" = 2 ]
	[ "$("$supervise" --cpu 1 nproc)" = 1 ]
	[ "$("$supervise" --cpu 1 --cpus 1000 nproc)" = "$all" ]
	run -2 "$supervise" --cpu 0 --cpus 0 true
}
