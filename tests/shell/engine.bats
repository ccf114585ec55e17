#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
#
# Guards the choice of an engine: what each command takes, what it refuses, and
# that a kernel is built for the engine that is to run it.

load lib
load source

setup()
{
	own_folder
}

# A capture whose engine is $1
mkcapture()
{
	rm -rf c
	"$built/tests/shell/mkcapture" c
	jq --arg engine "$1" '. + {engine: $engine}' c/capture.json > new
	mv new c/capture.json
}

see="; see 'ackproof"

@test "an engine that there is not, in every command" {
	mkcapture uml
	usage_error "--engine: 'xen', expected one of uml*" capture --engine xen a
	usage_error "--engine: '', expected one of uml*" replay --engine '' c
	usage_error "--engine: 'uml qemu', expected one of uml*" explain --engine 'uml qemu' c
	usage_error "--engine: 'xen', expected one of uml*" bisect log --engine xen c
	usage_error "--engine: 'xen', expected one of uml*" kernel build --engine xen stock
	usage_error "--engine: 'xen', expected one of uml*" reproduce --engine xen c
	mkcapture xen
	usage_error "$PWD/c/capture.json: unknown engine 'xen'" replay c
	[ ! -e a ]
}

@test "what a guest is to have, and what uml cannot give it" {
	mkcapture uml
	usage_error "--cpus: engine uml has no such choice$see capture --help'" capture --cpus 2 a
	usage_error "--cpus: engine uml has no such choice$see replay --help'" replay --cpus 2 c
	usage_error "--cpus: engine uml has no such choice$see explain --help'" explain --cpus 2 c
	usage_error "--cpus: engine uml has no such choice$see bisect --help'" bisect log --cpus 2 c
	usage_error "--cpus: '0' is not a number from 1 to 64" capture --cpus 0 a
	usage_error "--memory: '10m', expected 64m to 1024g$see*" capture --memory 10m a
	usage_error "--memory: '1x' is not a size like 320m" replay --memory 1x c
	usage_error "--append: more than one line$see*" capture --append $'a\nb' a
	[ ! -e a ]
}
