# SPDX-License-Identifier: MIT
"""privileges.py - of the zoo: programs that change who they are, or shut themselves or others in"""
from zoo import program

program("su", packages="util-linux", version="su --version", sees="su id", root=True, script=r"""
su -s /bin/sh nobody -c 'id; exit 3' || echo "status $?"
su -s /bin/sh nobody -c 'ls / | sort | head -n 3; seq 1000 | sort | tail -n 1'
""")
program("sudo", packages="sudo", version="sudo --version", sees="sudo id", root=True, script=r"""
sudo -n -u nobody id; sudo -n -u nobody sh -c 'exit 3' || echo "status $?"; sudo -n -E true; sudo -n sh -c 'echo $SUDO_USER'
""", env={"USER": "root", "LOGNAME": "root"})
program("setpriv", packages="util-linux", version="setpriv --version", sees="id sort", root=True, script=r"""
"${drop[@]}" id; "${drop[@]}" sh -c 'seq 1000 | sort | tail -n 1; exit 3' || echo "status $?"; setpriv --no-new-privs --bounding-set -all id -u
setpriv --reuid 65534 --clear-groups --no-new-privs seq 3
""")
# The libraries that are preloaded are not in the new root, of which the loader says a line each.
program("chroot", tolerates=r"^ERROR: ld\.so: object .* cannot be preloaded", packages="coreutils", version="chroot --version", root=True, script=r"""
mkdir -p "$TMPDIR/root/bin"; cp -L --parents $(LD_PRELOAD= ldd /bin/ls | grep -o '/[^ )]*') /bin/ls "$TMPDIR/root"
chroot "$TMPDIR/root" /bin/ls / | sort; chroot --userspec=65534:65534 "$TMPDIR/root" /bin/ls /bin
""")
program("unshare", packages="util-linux", version="unshare --version", sees="ls sort", root=True, script=r"""
unshare --mount --uts --ipc --net --pid --fork --mount-proc sh -c 'echo $$; ls -d /proc/[0-9]* | sort | wc -l | sed "s/[0-9]/few/"; seq 100 | sort | tail -n 1'
unshare --user --map-root-user sh -c 'id -u; ls -d /root | sort'
unshare --mount sh -c 'mount -t tmpfs none /dev/shm; seq 1000 | sort | tail -n 1; ls /dev/shm'
""")
BWRAP = r"bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-all --die-with-parent --new-session "
program("bubblewrap", packages="bubblewrap", version="bwrap --version", sees="bwrap", prepare="bwrap --ro-bind / / --unshare-all true || { echo 'no namespaces here'; exit 77; }",
        script=BWRAP + r"""sh -c 'id -u; ls /tmp; seq 1000 | sort | tail -n 1; exit 3' || echo "status $?"
""" + BWRAP + r"""/usr/bin/python3 -c 'import threading; t = [threading.Thread(target=print, args=("t",)) for _ in range(3)]; [x.start() for x in t]; [x.join() for x in t]'
""")
# Programs in a sandbox with a /dev of its own do not find the session, whose folder lies in the other /dev/shm.
# What flatpak gives bwrap as its filter: calls that are refused with EPERM; here with what pem might need among them.
program("bubblewrap-seccomp", packages="bubblewrap", version="bwrap --version", needs="bwrap /usr/bin/python3", sees="bwrap",
        prepare=r"""bwrap --ro-bind / / --unshare-all true || { echo 'no namespaces here'; exit 77; }
cat > filter.py <<'end'
import platform, struct, sys
refused = {"x86_64": [101, 103, 298, 163, 248, 249, 250, 155, 165, 166, 319, 324, 310, 311, 435, 321, 323], "aarch64": [117, 116, 241, 89, 217, 218, 219, 41, 40, 39, 279, 283, 270, 271, 435, 280, 282]}[platform.machine()]
op = lambda code, jt, jf, k: struct.pack("HBBI", code, jt, jf, k)
code = op(0x20, 0, 0, 0) + b"".join(op(0x15, len(refused) - i, 0, n) for i, n in enumerate(refused)) + op(6, 0, 0, 0x7fff0000) + op(6, 0, 0, 0x50001)
open("filter", "wb").write(code)
end
/usr/bin/python3 filter.py""", script=BWRAP + r"""--seccomp 9 sh -c 'seq 20000 | sort -r | tail -n 1; ls / | sort | head -n 2; exit 3' 9<"$MADE/filter" || echo "status $?"
""" + BWRAP + r"""--seccomp 9 /usr/bin/python3 -c 'import subprocess; print(subprocess.check_output(["echo", "child"]))' 9<"$MADE/filter"
""")
program("flatpak", packages="flatpak", version="flatpak --version", sees="flatpak", script=r"""
export XDG_DATA_HOME="$TMPDIR/data"; flatpak --user remotes; flatpak --user list; flatpak build-init "$TMPDIR/app" org.example.Zoo org.example.Sdk org.example.Platform 2>&1 | head -n 1 || :
""")
program("systemd-run", packages="systemd", version="systemd-run --version", needs="systemd-run /run/systemd/system", root=True, sees="systemd-run", script=r"""
systemd-run --quiet --pipe --wait -p DynamicUser=yes -p PrivateTmp=yes -p SystemCallFilter=@system-service id -u | sed 's/[0-9]*/n/'
systemd-run --quiet --scope sh -c 'echo scope'
""")
program("systemd-analyze", packages="systemd", version="systemd-analyze --version", sees="systemd-analyze", script=r"""
systemd-analyze calendar --base-time=@0 daily | head -n 2; systemd-escape 'a b/c'; systemd-id128 --help | wc -l
""", needs="systemd-analyze systemd-escape systemd-id128")
program("login-shells", packages="util-linux passwd", version="runuser --version", sees="runuser", root=True, script=r"""
runuser -u nobody -- id; runuser -u nobody -- sh -c 'seq 1000 | sort | tail -n 1'; newgrp() { :; }; sg root -c 'id -g' </dev/null
""")
