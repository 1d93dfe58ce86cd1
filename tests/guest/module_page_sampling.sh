#!/bin/sh
# SPDX-License-Identifier: MIT
# module_page_sampling.sh - what pem.ko looks at itself, recorded by pem: counters at events, pages of a program, free memory

work=$(mktemp -d)
tests=0
failed=0

# result NAME: of the condition that was just tried.
result() {
	status=$?
	tests=$((tests + 1))
	if [ $status -eq 0 ]; then
		echo "ok $tests - $1"
	else
		failed=1
		echo "not ok $tests - $1"
		sed 's/^/# /' "$work/said"
	fi
}

# count TRACE EVENT: how many records.
count() {
	pem export --to csv "$work/$1" -o "$work/$1.csv" >/dev/null 2>&1
	grep -c ",$2," "$work/$1.csv"
}

if [ ! -e /dev/pem ]; then
	echo "1..0 # skip /dev/pem is not there: pem.ko is not loaded"
	exit 77
fi

pem record -e Syscall::Enter --counters ContextSwitches,minorfaults -o "$work/counters" -- \
	busybox ls / >"$work/said" 2>&1
result "a command is recorded with counters"
all=$(count counters '[A-Za-z:]*')
readings=$(count counters HW::HWPerf::HPMsAtEvent)
echo "$all records, $readings readings" >>"$work/said"
[ "$readings" -gt 20 ] && [ "$readings" -le $((all / 2)) ] && [ "$readings" -ge $((all / 2 - 8)) ]
result "each event of the kernel has a reading in front of it"
grep -q ',HW::HWPerf::HPMsAtEvent,.*,busybox,[0-9]*,[0-9]*,0x[0-9a-f]*,0x0,0x[0-9a-f]*,ContextSwitches=[0-9]* MinorFaults=[0-9]*,' "$work/counters.csv"
result "a reading has two values, a program counter, and its thread's process"
pem report "$work/counters" >"$work/said" 2>&1
result "all of it is accounted for"

# No emulated processor counts these.
pem record -e Syscall::Enter --counters perf::STALLED-CYCLES-FRONTEND -o "$work/none" -- true >"$work/said" 2>&1 &&
	grep -q "^pem: --counters: perf::STALLED-CYCLES-FRONTEND can't be read at events of the kernel: " "$work/said" &&
	grep -q "not recorded: module events: --counters: perf::STALLED-CYCLES-FRONTEND can't be read" "$work/said" &&
	! grep -q "Invalid argument" "$work/said" &&
	[ "$(count none OS::Syscall::Enter)" -gt 0 ]
result "a counter that can't be had is told, with the reason, and the rest is recorded"

# enough_pages: has the trace so many of each?
enough_pages() {
	[ "$(count pages OS::Pages::Region)" -gt 10 ] && [ "$(count pages OS::Pages::Pass)" -gt 2 ] &&
		[ "$(count pages OS::Pages::Free)" -gt 20 ]
}

# A slow machine needs longer for so many passes.
for seconds in 1 4 16 64; do
	rm -rf "$work/pages"
	pem record -e 'OS::Pages::*' --pages 10ms,64K -o "$work/pages" -- sleep $seconds >"$work/said" 2>&1 || break
	! enough_pages || break
done
[ -s "$work/pages.csv" ]
result "a command is recorded with its pages"
enough_pages
result "regions, passes and free blocks are told"
pem report "$work/pages" >"$work/said" 2>&1
result "all of that is accounted for"

# attached SECONDS: the passes of a process that lives for so long
attached() {
	rm -rf "$work/attached"
	sleep "$1" &
	pem record -e OS::Pages::Pass --pages 5ms -o "$work/attached" -p $! >"$work/said" 2>&1 &&
		[ "$(count attached OS::Pages::Pass)" -gt 2 ]
}

attached 1 || attached 8 || attached 64
result "the pages of a process that runs already are told, until it ends"

rm -rf "$work"
echo "1..$tests"
exit $failed
