#!/bin/sh
# SPDX-License-Identifier: MIT
#
# probes.sh - probes where the host has none, and on another CPU: functions of the kernel (fentry, fexit, kprobe, kretprobe), and
# of programs (uprobe, uretprobe, usdt), with their arguments
#
# dd reads so many times so many bytes, which nobody else does: each read is one record of each probe, with that argument or
# that result. What tests/programs/probed.c passes to its functions and static probes is in its head.
#
# guest: limit=120 file=build/programs/probed
READS=50
BYTES=137
USES=50
PROBED=build/programs/probed
number=0

# result WHAT STATUS: with what pem said, if it failed
result() {
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' /tmp/probes.log
	fi
}

# Record events, each with a condition on its fields: record EVENT.. -- COMMAND
record() {
	rm -rf /tmp/probes /tmp/probes.csv
	events=
	while [ "$1" != -- ]; do
		events="$events${events:+,}$1"
		shift
	done
	pem record -q -e "$events" -o /tmp/probes "$@" >/tmp/probes.log 2>&1 &&
		pem export --to csv /tmp/probes -o /tmp/probes.csv >>/tmp/probes.log 2>&1
}

# check WHAT RECORDS NAME [FIELD=VALUE]: so many of this event, with this value of a field
check() {
	field=${4%%=*} value=${4#*=}
	found=$(awk -F, -v name="$3" -v field="$field" -v value="$value" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["event"] == name && (field == "" || $at[field] == value) { n++ }
		END { print n + 0 }' /tmp/probes.csv)
	echo "$found records of $3 $4, not $2" >>/tmp/probes.log
	[ "$found" = "$2" ]
	result "$1" $?
}

# Its trampolines need Linux 6.4 on arm64.
refused() {
	rm -rf /tmp/probes
	pem record -o /tmp/probes -e fentry:vfs_read,fexit:vfs_read -- true >/tmp/probes.log 2>&1
	[ "$(grep -c "^pem: can't attach to .*arm64 can since Linux 6.4" /tmp/probes.log)" = 2 ]
	result "where no program can be put into functions, that is said" $?
}

echo TAP version 13
functions="fentry:vfs_read where count == $BYTES,fexit:vfs_read where count == $BYTES && ret == $BYTES"
case $(uname -m)-$(uname -r) in
aarch64-6.1.*)
	functions=
	refused
	;;
esac
record ${functions:+"$functions"} "kprobe:vfs_read where count == $BYTES" "kretprobe:vfs_read where ret == $BYTES" \
	"kprobe:vfs_read+0 where arg2 == $BYTES" "syscalls:sys_enter_read where count == $BYTES" -- \
	dd if=/dev/zero of=/dev/null bs=$BYTES count=$READS
if [ "$functions" ]; then
	check "an entry has its arguments by name" $READS OS::fentry::vfs_read
	check "an exit has arguments and result" $READS OS::fexit::vfs_read
fi
check "a kprobe has arguments by the kernel's types" $READS OS::kprobe::vfs_read
check "a kretprobe has the result" $READS OS::kretprobe::vfs_read
check "a kprobe at an offset has registers" $READS OS::kprobe::vfs_read_0
check "a system call's tracepoint has its arguments" $READS OS::syscalls::sys_enter_read

record "uprobe:$PROBED:probed_sum where arg0 >= 10 && arg1 == 100" "uretprobe:$PROBED:probed_sum where ret >= 110" \
	"uprobe:libc.so.6:printf" "usdt:$PROBED:probed:work where arg0 >= 3 && arg1 >= 0x300000000 && arg2 <= -3 && arg3 == 7" \
	"usdt:$PROBED:variable where arg0 <= 110" "usdt:$PROBED:place" "usdt:$PROBED:uneven where arg0 < 20" -- $PROBED $USES
check "a program's function has its arguments in registers" 40 APP::probed::probed_sum
check "its return has the result" 40 APP::probed::probed_sum__return
check "a function of a shared library is probed in this program" 1 APP::libc_so_6::printf
check "a static probe behind its semaphore is seen" 47 APP::probed::probed__work
check "it has an argument from a register, with its sign" 1 APP::probed::probed__work arg0=49
check "one from the stack" 1 APP::probed::probed__work arg2=-49
check "and a constant" 47 APP::probed::probed__work arg3=7
check "a static probe's argument is read from a variable" 10 APP::probed::probed__variable
check "a static probe at two places is one event, of the one" 25 APP::probed::probed__place arg0=1000
check "and of the other" 1 APP::probed::probed__place arg0=49
check "what only some of its places have is no field, and the others are read" 20 APP::probed::probed__uneven
echo "1..$number"
