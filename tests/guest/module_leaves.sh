# SPDX-License-Identifier: MIT
#
# module_leaves.sh - pem.ko records events of another module of the kernel's, ext4, which is unloaded meanwhile and loaded again
#
# Not here: which events there are while a module is away (module_faults.c).
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
[ -e /guest/modules/ext4.ko ] || [ -e /guest/modules/ext4.ko.xz ] || { echo "1..0 # SKIP ext4 is built in"; exit 0; }
work=$(mktemp -d)
said=$work/said
mkdir "$work/disk"
ln -s /bin/busybox "$work/afterwards" # it knows no such command, but ran as that

cat >"$work/load" <<'END'
[ -d /sys/module/"$1" ] && exit
file=/guest/modules/$1.ko
# Later kernels have crc32c built in.
[ "$1" != crc32c_generic ] || [ -e "$file" ] || [ -e "$file.xz" ] || exit 0
if [ ! -e "$file" ]; then
	xzcat "$file.xz" >/tmp/"$1".ko && file=/tmp/$1.ko
fi
shift
insmod "$file" "$@"
END
# What is observed: a file system is used; its module goes, and others are used; it comes again.
cat >"$work/uses" <<END
mount -t ext4 /dev/ram0 $work/disk && mkdir $work/disk/\$1 && umount $work/disk
END
cat >"$work/story" <<END
set -e
sh $work/uses first
rmmod ext4
[ ! -d /sys/module/ext4 ]
$work/afterwards || true
sh $work/load ext4
sh $work/uses second
END

record() { # NAME, command
	name=$1
	shift
	pem record -q -a -e OS::Ext4::CreateFile,OS::Process::Exec -o "$work/$name" -- "$@" >"$said" 2>&1 &&
		pem report --json "$work/$name" >"$work/$name.json" 2>>"$said" &&
		pem export --to csv "$work/$name" -o "$work/$name.csv" >>"$said" 2>&1 &&
		cut -d , -f 1-8 "$work/$name.csv" >>"$said"
}
# inodes NAME: how many were allocated in a trace
inodes() { grep -c OS::Ext4::CreateFile "$work/$1.csv"; }

ready() {
	for module in "brd rd_nr=1 rd_size=8192" mbcache crc16 crc32c_generic jbd2 ext4; do
		sh "$work/load" $module || return 1
	done
	mke2fs -F /dev/ram0
}
ready >"$said" 2>&1
result "ext4 is loaded" $? "$said"

leaves() {
	record leaves sh "$work/story" && [ "$(inodes leaves)" -ge 1 ] && grep -q '"discarded":0' "$work/leaves.json" &&
		sed '1,/OS::Ext4::CreateFile/d' "$work/leaves.csv" | grep OS::Process::Exec | grep -q afterwards
}
leaves
result "a recording goes on when a module goes whose events it records, and keeps them" $? "$said"

again() { record again sh "$work/uses" third && [ "$(inodes again)" -ge 1 ]; }
again
result "events of a module that came again are recorded" $? "$said"

rmmod ext4 && rmmod jbd2 && ! pem list --json OS::Ext4::CreateFile | grep -q '"available":true' >"$said" 2>&1
result "events of a module that is away are not offered" $? "$said"
rmmod mbcache crc16 crc32c_generic brd 2>/dev/null
rm -rf "$work"
echo "1..$number"
