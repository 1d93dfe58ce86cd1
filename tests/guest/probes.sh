#!/bin/sh
# SPDX-License-Identifier: MIT
#
# probes.sh - functions of the kernel as probes: fentry, fexit, kprobe, kretprobe, where a kernel has both
#
# dd reads so many times so many bytes, which nobody else does: each read is one record of each probe, with that argument or
# that result.
#
# guest: kernels=x86_64-* limit=120
READS=50
BYTES=137
number=0

# Record an event with a condition on a field, and count its records by its name.
count() {
	rm -rf /tmp/probes
	pem record -q -e "$1 where $2" -o /tmp/probes -- \
		dd if=/dev/zero of=/dev/null bs=$BYTES count=$READS >/tmp/probes.log 2>&1 || return
	pem export --to csv /tmp/probes -o /tmp/probes.csv >/dev/null 2>&1
	found=$(grep -c ",$3," /tmp/probes.csv)
}

# check WHAT EVENT CONDITION NAME
check() {
	number=$((number + 1))
	found=none
	count "$2" "$3" "$4"
	if [ "$found" = $READS ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		echo "# $found records of $2 where $3, not $READS"
		sed 's/^/# /' /tmp/probes.log
	fi
}

echo TAP version 13
check "an entry has its arguments by name" fentry:vfs_read "count == $BYTES" OS::fentry::vfs_read
check "an exit has arguments and result" fexit:vfs_read "count == $BYTES && ret == $BYTES" OS::fexit::vfs_read
check "a kprobe has arguments by the kernel's types" kprobe:vfs_read "count == $BYTES" OS::kprobe::vfs_read
check "a kretprobe has the result" kretprobe:vfs_read "ret == $BYTES" OS::kretprobe::vfs_read
check "a kprobe at an offset has registers" kprobe:vfs_read+0 "arg2 == $BYTES" OS::kprobe::vfs_read_0
check "a system call's tracepoint has its arguments" syscalls:sys_enter_read "count == $BYTES" \
	OS::syscalls::sys_enter_read
echo "1..$number"
