#!/bin/sh
# SPDX-License-Identifier: MIT
#
# catalogue.sh - all events of the operating system that pem list promises of this kernel, loaded and attached at once
#
# By BPF and by the module. Tracepoints of ext4 are a module's, whose arguments kernels since 6.14 do not let programs follow
# unasked.
#
# guest: kernels=x86_64-newest limit=600
number=0

# result WHAT STATUS: with what pem said, if it failed
result() {
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		cut -c1-2000 /tmp/catalogue.log | sed 's/^/# /'
	fi
}

# promised LEAST: names of the events that are promised, with commas between; they are at least as many
promised() {
	pem list os | awk -v least="$1" '$2 == "yes" && $1 !~ /^OS::Pages/ { printf "%s%s", comma, $1; comma = ","; n++ }
		END { exit n < least }'
}

# all PATH: record all that is promised
all() {
	rm -rf /tmp/catalogue
	events=$(promised 380 2>/tmp/catalogue.log)
	result "$1: most of the catalogue is promised" $?
	pem record -q -e "$events" -o /tmp/catalogue -- true >/tmp/catalogue.log 2>&1 && [ ! -s /tmp/catalogue.log ]
	result "$1: each event that is promised is recorded" $?
	pem report /tmp/catalogue >/tmp/catalogue.log 2>&1 && ! grep 'Not recorded' /tmp/catalogue.log
	result "$1: the trace balances" $?
}

echo TAP version 13
# busybox's insmod would first offer the compressed file to the kernel, which complains.
for name in crc16 mbcache jbd2 ext4; do
	[ ! -e /guest/modules/$name.ko.xz ] || xzcat /guest/modules/$name.ko.xz >/tmp/$name.ko
	[ ! -e /tmp/$name.ko ] || insmod /tmp/$name.ko
done
PEM_PLUGIN_PATH=/guest/without-module all BPF
all 'the module'
rmmod pem
result 'the module is unloaded' $?
insmod /guest/pem.ko && chgrp tracing /dev/pem && chmod 0660 /dev/pem
rmmod ext4 jbd2 mbcache crc16 2>/dev/null
echo "1..$number"
