# SPDX-License-Identifier: MIT
#
# module_paths.sh - pem on top of /dev/pem: which path serves which event, and that nobody can tell by what arrives
#
# guest: limit=180
number=0
result() { # NAME, status, file with details
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' "$3" 2>/dev/null | tail -n 30
	fi
}

[ -e /dev/pem ] || { echo "1..0 # SKIP pem.ko is not loaded"; exit 0; }
work=$(mktemp -d)
said=$work/said
mkdir -m 700 "$work/without"
ln -s /pem/build/lib/pem/source-kernel.so /pem/build/lib/pem/source-counters.so /pem/build/lib/pem/export-csv.so "$work/without"

# record NAME ARGUMENTS: a recording that has to succeed; report's status has to be 0, too: all is accounted for.
record() {
	name=$1
	shift
	rm -rf "$work/$name"
	PEM_PLUGIN_PATH=$plugins pem record -q -o "$work/$name" "$@" >"$said" 2>&1 &&
		pem report --json "$work/$name" >"$work/$name.json" 2>>"$said" &&
		pem export --to csv "$work/$name" -o "$work/$name.csv" >>"$said" 2>&1
}
# by NAME: the paths by which a trace's kernel events came; what threads did at first comes by neither
by() { sed -n 's/^producer\t0\t\([^\t]*\)\t.*/\1/p' "$work/$1/.pem/balance" | grep -v '^threads$' | sort -u | tr '\n' ' '; }
# columns NAME COLUMN..: these of a trace's rows, commas between
columns() {
	file=$work/$1.csv
	shift
	awk -F, -v wanted="$*" 'NR == 1 { n = split(wanted, w, " "); for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ line = ""; for (i = 1; i <= n; i++) line = line (i > 1 ? "," : "") (w[i] in at ? $at[w[i]] : "?"); print line }' "$file"
}

# Not all of the kernel's: BPF would load hundreds of programs, which is another test's to see (kernel_walk).
some=OS::Syscall::Enter,OS::Syscall::Exit,OS::Sched::Switch,OS::Process::Exec,OS::Process::Exit
is_served() {
	record module -e "$some" -- busybox true && [ "$(by module)" = "module " ]
}
is_served
result "a recording is served by the module at once" $? "$said"

without_the_module() {
	rmmod pem && record bpf -e "$some" -- busybox true && [ "$(by bpf)" = "BPF " ]
	status=$?
	insmod /guest/pem.ko && chgrp tracing /dev/pem && chmod 0660 /dev/pem && return $status
}
without_the_module
result "the same command is served by BPF where the module is not loaded" $? "$said"

# What a program does the same way each time: its system calls, and how it began and ended; addresses and pids are others.
story() {
	columns "$1" event process number result filename exitCode | grep -E '^OS::(Syscall|Process::(Exec|Exit))' |
		grep ,busybox, | awk -F, -v OFS=, '$4 > 99 { $4 = "many" } { print }' >"$work/$1.story"
	head -n 1 "$work/$1.csv" | tr ',' '\n' | sort >"$work/$1.columns"
	[ -s "$work/$1.story" ]
}
same() {
	record m -e OS::Syscall::Enter,OS::Syscall::Exit,OS::Process::Exec,OS::Process::Exit -- busybox uname -a || return 1
	plugins=$work/without
	record b -e OS::Syscall::Enter,OS::Syscall::Exit,OS::Process::Exec,OS::Process::Exit -- busybox uname -a
	status=$?
	plugins=
	echo "producers: $(by m)and $(by b)" >>"$said"
	[ $status = 0 ] && [ "$(by m)$(by b)" = "module BPF " ] && story m && story b &&
		diff "$work/m.story" "$work/b.story" >>"$said" 2>&1 && diff "$work/m.columns" "$work/b.columns" >>"$said" 2>&1
}
same
result "both paths record the same events with the same fields of the same command" $? "$said"

# How many processes of busybox, also as it runs itself again, ended in a trace, by number and start, and the least of their numbers.
ended() {
	columns "$1" event process pid process_start_ns | grep -E '^OS::Process::Exit,(busybox|exe),' | sort -u |
		awk -F, '{ n++; if (n == 1 || $3 < least) least = $3 } END { print n + 0, least + 0 }'
}
# Their numbers inside are those of this machine's kernel threads.
in_a_namespace() {
	children='i=0; while [ $i -lt 20 ]; do /bin/busybox cat /dev/null; i=$((i + 1)); done'
	for path in m b; do
		[ $path = b ] && plugins=$work/without
		record $path -e OS::Syscall::Enter,OS::Process::Exec,OS::Process::Exit -- busybox unshare -p -f busybox sh -c "$children"
		status=$?
		plugins=
		echo "$path: by $(by $path), ended $(ended $path)" >>"$said"
		[ $status = 0 ] || return 1
		# The shell, its children and unshare, all younger than this shell.
		[ "$(ended $path | cut -d' ' -f1)" = 22 ] && [ "$(ended $path | cut -d' ' -f2)" -gt $$ ] || return 1
	done
	[ "$(by m)$(by b)" = "module BPF " ]
}
in_a_namespace
result "processes of an inner pid namespace stand under numbers of their own, by both paths" $? "$said"

# kmem_cache_alloc is no event of the module's: nothing installed describes its types.
mixed() {
	pem list --json OS::Mem::KmemCacheAlloc | grep -q '"path":"bpf"' || { echo "not served by BPF" >"$said"; return 1; }
	record mixed -e OS::Mem::KmemCacheAlloc,OS::Syscall::Enter,OS::Sched::Switch -- busybox ls / || return 1
	echo "producers: $(by mixed)" >>"$said"
	[ "$(by mixed)" = "BPF module " ] || return 1
	columns mixed event process | sort | uniq -c >>"$said"
	# Each in the process that did it, by either path; no switch twice, which would be one from a thread that is not running.
	columns mixed event process | grep -q '^OS::Mem::KmemCacheAlloc,busybox$' &&
		columns mixed event process | grep -q '^OS::Syscall::Enter,busybox$' &&
		! columns mixed event process | grep -q '^OS::Mem::KmemCacheAlloc,$' &&
		columns mixed event cpu nextTid | awk -F, '$1 == "OS::Sched::Switch" { if (last[$2] == $3) twice++; last[$2] = $3 }
			END { exit twice > 2 }'
}
mixed
result "what the module has not comes by BPF into the same trace, each in its own process" $? "$said"

printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\nmember:x:1000:900::/tmp:/bin/sh\n' >/etc/passwd
as() { # USER COMMAND
	su "$1" -s /bin/sh -c "export PATH=$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH PEM_RUNTIME_DIR=/tmp/$1 HOME=/tmp; $2"
}
# Debian's kernel lets nobody count before that; 2 is Linux's own. It is given back at the end.
paranoia=/proc/sys/kernel/perf_event_paranoid
paranoid=$(cat $paranoia)
echo 2 >$paranoia
refused() {
	as nobody 'pem doctor' >"$said" 2>&1
	tr -s ' \n' ' ' <"$said" | grep -q 'join the group tracing' || return 1
	as nobody 'pem record -o /tmp/refused -e OS::Syscall::Enter,HW::Software::TaskClock -- busybox true' >"$said" 2>&1
	[ $? = 0 ] && grep -q 'group tracing' "$said" && grep -q CAP_BPF "$said"
}
refused
result "who may not open the device is told how, and what needs no privilege goes on" $? "$said"

in_group() {
	as member 'pem record -q -o /tmp/member-trace -e OS::Syscall::Enter -- busybox true' >"$said" 2>&1 &&
		grep -q '^producer	0	module' /tmp/member-trace/.pem/balance
}
in_group
result "a member of the group tracing records without any capability" $? "$said"

everything() { # OS::Syscall::File and OS::Process::Arguments come by BPF
	record all -e OS -a -- busybox find /sys -maxdepth 2 -name uevent && [ "$(by all)" = "BPF module " ] &&
		grep -q '"discarded":0' "$work/all.json"
}
everything
result "the whole machine is recorded, and all is accounted for" $? "$said"
cpu=/sys/devices/system/cpu/cpu1/online
# The recorder hears of the CPU some time after it came: on a slow machine that is later.
comes_online() {
	record late -a -e OS::Syscall::Enter -- sh -c "echo 1 >$cpu; sleep $1; taskset 2 busybox ls /" || return 1
	columns late event process cpu | sort | uniq -c >>"$said"
	columns late event process cpu | grep -Eq '^OS::Syscall::Enter,(exe|busybox|taskset),1$' # as busybox starts itself
}
if [ -e $cpu ] && echo 0 >$cpu 2>/dev/null; then
	comes_online 0.3 || { echo 0 >$cpu && comes_online 10; }
	result "a CPU that comes online while a recording goes on is recorded, too" $? "$said"
	echo 1 >$cpu 2>/dev/null
else
	result "a CPU that comes online while a recording goes on is recorded, too # SKIP CPU 1 can't be taken offline" 0
fi

goes_offline() {
	record gone -a -e OS::Syscall::Enter -- sh -c "taskset 2 busybox ls /; echo 0 >$cpu; sleep 0.2; busybox ls /" || return 1
	[ "$(cat $cpu)" = 0 ] || { echo "CPU 1 is online still" >>"$said"; return 1; }
	columns gone event process cpu | sort | uniq -c >>"$said"
	columns gone event process cpu | grep -Eq '^OS::Syscall::Enter,(exe|busybox|taskset),1$' # as busybox starts itself
}
if [ -e $cpu ] && echo 0 >$cpu 2>/dev/null && echo 1 >$cpu; then
	goes_offline
	result "what a CPU recorded before it goes offline is not lost" $? "$said"
	echo 1 >$cpu 2>/dev/null
else
	result "what a CPU recorded before it goes offline is not lost # SKIP CPU 1 can't be taken offline" 0
fi

limit=/sys/module/pem/parameters/limit_mb
small() {
	before=$(cat $limit)
	echo 2 >$limit
	as member 'pem record -o /tmp/small -e OS::Syscall::Enter -- busybox true' >"$said" 2>&1
	status=$?
	echo "$before" >$limit
	[ $status = 0 ] && grep -q '^producer	0	module' /tmp/small/.pem/balance
}
small
result "where the user's limit is too small for the default, buffers are smaller" $? "$said"
echo "$paranoid" >$paranoia
rm -rf "$work"
echo "1..$number"
