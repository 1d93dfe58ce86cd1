# SPDX-License-Identifier: MIT
"""tools.py - of the zoo: command-line programs that compute, copy, pack and convert"""
from zoo import program

program("coreutils", packages="coreutils findutils grep gawk tar gzip xz-utils", version="sort --version", sees="sort tar xz awk", script=r"""
seq 300000 | awk '{ print ($1 * 7919) % 1000003, $1 }' > numbers
sort --parallel=2 -n -S 2M numbers > sorted
sha256sum sorted
tar --sort=name --mtime=@0 --owner=0 --group=0 -cf all.tar numbers sorted
xz -1 -T2 --block-size=262144 all.tar
gzip -n numbers
find . -type f | sort | xargs -n 1 -P 2 cksum | sort
grep -c 77 sorted
""")

program("bash", packages="bash", version="bash --version", sees="bash", script=r"""
trap 'echo bye' EXIT
for i in 1 2 3 4 5; do (echo $i; exit $i) | cat; done || :
coproc up { tr a-z A-Z; }
echo hello >&"${up[1]}"; eval "exec ${up[1]}>&-"; cat <&"${up[0]}"
diff <(seq 5) <(seq 6) || echo differ
sleep 0.05 & wait; (kill -TERM $BASHPID) || echo "killed: $?"
(ulimit -v 200000; bash -c 'echo limited')
""")

program("sqlite3", packages="sqlite3", version="sqlite3 --version", sees="sqlite3", script=r"""
sqlite3 -batch shop.db "create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 60000) insert into t select x, hex(x * x % 977) from c;
create index i on t(b); select count(*), sum(a), max(b) from t; select b, count(*) from t group by b order by 2 desc, 1 limit 3;
update t set b = b || 'x' where a % 3 = 0; vacuum; pragma integrity_check"
sqlite3 shop.db .dump | sha256sum
""")

program("perl", packages="perl", version="perl -e 'print \"$^V\"'", sees="perl", script=r"""
perl -e 'my %h = map { $_ => $_ ** 2 % 7919 } 1..90000; print join(",", (sort { $h{$a} <=> $h{$b} || $a <=> $b } keys %h)[0..4]), "\n";
$SIG{USR1} = sub { print "signal\n" }; $| = 1; kill USR1 => $$;
if (my $p = fork) { waitpid $p, 0; print $? >> 8, "\n" } else { exec "sh", "-c", "exit 3" }
print join(" ", map { `echo $_` =~ s/\n//r } 1..5), "\n"; my $t = "ab" x 50000; print $t =~ s/a(?=b)/c/gr =~ tr/c//, "\n"'
perl -Mthreads -e 'print join(",", map { $_->join } map { my $n = $_; threads->create(sub { my $s = 0; $s += $_ for 1..20000 * $n; $s }) } 1..4), "\n"'
""")

program("git", packages="git", version="git --version", sees="git", script=r"""
export GIT_AUTHOR_DATE='2001-01-01T00:00:00Z' GIT_COMMITTER_DATE='2001-01-01T00:00:00Z'
git config --global user.name zoo; git config --global user.email zoo@example.org; git config --global init.defaultBranch main
cd "$TMPDIR"; git init -q one; cd one
for i in 1 2 3 4 5 6; do seq $((i * 3000)) > "file$i"; git add .; git commit -q -m "commit $i"; done
git checkout -q -b side HEAD~2; echo side > side; git add side; git commit -q -m side; git merge -q --no-edit main
git gc -q; git fsck --full 2>&1; git log --format='%H %s' | cat
git clone -q . ../two; git -C ../two archive HEAD | sha256sum; git -C ../two blame file6 | sha256sum
""")

program("rsync", packages="rsync", version="rsync --version", sees="rsync", script=r"""
mkdir from; for i in $(seq 60); do seq $((i * 200)) > "from/$i"; done; ln -s 1 from/link
rsync -a --checksum from/ to/; for i in 3 5 7; do echo more >> "from/$i"; done; rm from/9; touch -d @1000000000 to/* from/* to from
rsync -a --checksum --no-whole-file --delete --itemize-changes from/ to/ | sort
rsync -az -e "$MADE/local" from/ host:"$PWD/far/"; diff -r from far && echo same
""", prepare=r"""printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' > "$MADE/local"; chmod +x "$MADE/local" """)

program("ffmpeg", packages="ffmpeg", version="ffmpeg -version", sees="ffmpeg", seconds=4, script=r"""
ffmpeg -nostdin -loglevel error -f lavfi -i testsrc=size=320x240:rate=25 -f lavfi -i sine=frequency=440 -t 3 -threads 2 \
	-c:v mpeg4 -c:a mp2 -fflags +bitexact -flags:v +bitexact -flags:a +bitexact out.avi
ffmpeg -nostdin -loglevel error -threads 2 -i out.avi -vf scale=160:120 -f framemd5 - | sha256sum
""")

program("openssl", packages="openssl", version="openssl version", sees="openssl", script=r"""
seq 200000 | openssl enc -aes-256-ctr -K 00 -iv 00 -out cipher 2>/dev/null; openssl dgst -sha512 cipher
openssl genrsa -out "$TMPDIR/key" 2048 2>/dev/null; openssl dgst -sha256 -sign "$TMPDIR/key" -out "$TMPDIR/signed" cipher
openssl rsa -in "$TMPDIR/key" -pubout -out "$TMPDIR/public" 2>/dev/null
openssl dgst -sha256 -verify "$TMPDIR/public" -signature "$TMPDIR/signed" cipher
""")

program("vim", packages="vim-nox", version="vim --version", needs="vim", sees="vim", script=r"""
seq 20000 > text; vim -u NONE -i NONE -n -es -c '%s/7/seven/ge' -c 'g/99/d' -c 'sort!' -c wq text; sha256sum text
""")

program("man", packages="man-db", version="man --version", sees="man", user="nobody", script=r"""
printf '.TH ZOO 1\n.SH NAME\nzoo - a page\n.SH TEXT\n' > zoo.1; seq 3000 >> zoo.1; MANROFFSEQ='' man -l zoo.1 | sha256sum
""", needs="man groff")

program("file", packages="file", version="file --version", sees="file", script=r"""
seq 100 > text; gzip -n -k text; ln -s text link; file text text.gz link /bin/true | sed 's/BuildID[^,]*,//'
""")

program("gdb", packages="gdb", version="gdb --version", sees="gdb", seconds=3, script=r"""
gdb -batch -nx -ex 'break exit' -ex run -ex 'info breakpoints' -ex kill --args /bin/echo hello 2>/dev/null | grep -E '^(hello|Breakpoint [0-9]|.*already hit)' |
	sed -E 's/^(Breakpoint 1)\.1,/\1,/'  # pem's own exit is a second place
""")

program("strace", packages="strace", version="strace --version", sees="ls", script=r"""
strace -f -o "$TMPDIR/log" -e trace=execve sh -c 'ls /usr | sort; exit 3' || echo "status $?"; grep -c 'execve("' "$TMPDIR/log"
""")
