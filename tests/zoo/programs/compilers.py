# SPDX-License-Identifier: MIT
"""compilers.py - of the zoo: compilers at work, and programs of theirs that are linked in ways that matter to pem"""
import os

from zoo import HERE, program

C = r"""
cat > program.c <<'end'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *arg)
{
	char *kept[64] = { 0 };
	unsigned long i, sum = 0, seed = (unsigned long)arg;
	for (i = 0; i < 40000; i++) {
		unsigned long slot = (seed = seed * 6364136223846793005ul + 1442695040888963407ul) >> 58;
		size_t size = 1 + (seed >> 40) % 3000;
		if (kept[slot])
			sum += strlen(kept[slot]);
		kept[slot] = slot % 3 ? realloc(kept[slot], size) : (free(kept[slot]), malloc(size));
		memset(kept[slot], 'x', size - 1);
		kept[slot][size - 1] = 0;
	}
	for (i = 0; i < 64; i++)
		free(kept[i]);
	return (void *)sum;
}
int main(void)
{
	pthread_t threads[4];
	void *sum;
	unsigned long i;
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i + 1));
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &sum);
		printf("%lu\n", (unsigned long)sum);
	}
	return 7;
}
end
"""

CXX = r"""
cat > program.cpp <<'end'
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>
int main()
{
	std::map<std::string, std::shared_ptr<std::vector<int>>> words;
	for (int i = 0; i < 30000; i++) {
		auto &w = words[std::to_string(i * 7919 % 4001)];
		if (!w)
			w = std::make_shared<std::vector<int>>();
		w->push_back(i);
	}
	size_t longest = 0;
	for (auto &w : words)
		longest = std::max(longest, w.second->size());
	std::cout << words.size() << ' ' << longest << ' ' << std::regex_match("zoo77", std::regex("[a-z]+\\d+")) << '\n';
	try { throw std::runtime_error("thrown"); } catch (const std::exception &e) { std::cout << e.what() << '\n'; }
}
end
"""

program("gcc", packages="gcc g++", version="gcc --version", sees="cc1 as", seconds=6, script=C + CXX + r"""
gcc -O2 -g0 -pthread -flto -o program program.c; g++ -O1 -g0 -o other program.cpp & wait $!
./program || echo "status $?"; ./other
""")

program("clang", packages="clang", version="clang --version", sees="clang", seconds=6, script=C + CXX + r"""
clang -O2 -g0 -pthread -o program program.c; clang++ -O1 -g0 -o other program.cpp
./program || echo "status $?"; ./other
""")

for name, flags, prefix in (("asan-gcc", "gcc -fsanitize=address", ""), ("ubsan-gcc", "gcc -fsanitize=undefined", ""),
                            ("tsan-gcc", "gcc -fsanitize=thread", "setarch -R "), ("asan-clang", "clang -fsanitize=address -shared-libasan -Wl,-rpath,$(clang -print-resource-dir)/lib/linux", ""),
                            ("lsan-gcc", "gcc -fsanitize=leak", "")):
    program(name, packages="gcc clang", version=flags.split()[0] + " --version", prepare=C + r"""
COMPILER -O1 -g -pthread -o program program.c 2>"$TMPDIR/why" || { head -n 1 "$TMPDIR/why"; exit 77; }
cat > bad.c <<'end'
#include <stdlib.h>
int main(int argc, char **argv) { char *p = malloc(10); p[argc + 10] = 1; free(p); return p == (char *)argv; }
end
COMPILER -O0 -g -o bad bad.c
RUN ./program >/dev/null || [ $? = 7 ] || { echo "it does not run here"; exit 77; }
""".replace("COMPILER", flags).replace("RUN ", prefix), env={"ASAN_OPTIONS": "detect_leaks=0"}, script=r"""
RUN "$MADE/program" || echo "status $?"
status=0; RUN "$MADE/bad" 2>"$TMPDIR/said" || status=$?
echo "status $status"; grep -E '^SUMMARY' "$TMPDIR/said" | sed 's/ in .*//' || :
""".replace("RUN ", prefix))

program("valgrind", packages="valgrind gcc", version="valgrind --version", sees="", seconds=8, limit_s=120, prepare=C + r"""
sed -i 's/40000/4000/' program.c; gcc -g -pthread -o program program.c
""", script=r"""
valgrind -q --error-exitcode=9 "$MADE/program" || echo "status $?"
valgrind -q --tool=callgrind --callgrind-out-file=/dev/null sqlite3 :memory: 'select 6 * 7' 2>/dev/null
""")

# These two take atomic instructions for races, so libpem comes with suppressions. What they find of the program must stay.
RACES = r"""
cat > races.c <<'end'
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static long total;
static void *race(void *arg)
{
	for (int i = 0; i < 100; i++)
		total += i;
	return arg;
}
static void *in_order(void *arg)
{
	pthread_mutex_lock(&a);
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	return arg;
}
static void *against_order(void *arg)
{
	pthread_mutex_lock(&b);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return arg;
}
int main(void)
{
	pthread_t one, two;
	pthread_create(&one, NULL, race, NULL);
	pthread_create(&two, NULL, race, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	pthread_create(&one, NULL, in_order, NULL);
	pthread_join(one, NULL);
	pthread_create(&two, NULL, against_order, NULL);
	pthread_join(two, NULL);
	pthread_mutex_unlock(&a);
	return 0;
}
end
"""
for tool in "helgrind", "drd":
    program(tool, packages="valgrind gcc", version="valgrind --version", seconds=10, limit_s=120,
            env={"SUPPRESSIONS": os.path.join(HERE, "..", "..", "libpem", "valgrind.supp")}, prepare=C + RACES + r"""
sed -i 's/40000/400/' program.c; gcc -O1 -g -pthread -o program program.c; gcc -O0 -g -pthread -o races races.c""", script=r"""
check() { valgrind -q --tool=TOOL --suppressions="$SUPPRESSIONS" --error-exitcode=9 "$MADE/$1" 2>"$TMPDIR/$1" || echo "status $?"; }
check program; grep '^==' "$TMPDIR/program" | cut -d ' ' -f 2- || :
check races; grep -oE '(Possible data race|Conflicting|lock order|unlocked a not-locked|Mutex not locked)|\(races.c:[0-9]+\)' "$TMPDIR/races" | sort -u
""".replace("TOOL", tool))

# Started by pem itself, of which it has to say why nothing is seen, and by a shell that is watched.
LOADER = r"^ERROR: ld\.so: object '.*libpem[^']*' from LD_PRELOAD cannot be preloaded"
for name, packages, needs, compiler, says, more in (
        ("static-glibc", "gcc libc6-dev", "gcc", "gcc -static", "linked statically", {}),
        ("static-musl", "musl-tools", "musl-gcc", "musl-gcc -static", "linked statically", {}),
        ("dynamic-musl", "musl-tools", "musl-gcc", "musl-gcc", "musl", {}),
        ("32-bit", "gcc libc6-dev-i386 lib32gcc-12-dev", "gcc", "gcc -m32", "32-bit", {"tolerates": LOADER})):
    made = C + compiler + r""" -pthread -o zoo-other program.c 2>why || { head -n 1 why; exit 77; }"""
    version = "dpkg-query -W musl-tools" if "musl" in name else "gcc --version"
    program(name, packages=packages, version=version, needs=needs, unseen="zoo-other", says=says, prepare=made, command="zoo-other", status=7)
    program(name + "-child", packages=packages, version=version, needs=needs, unseen="zoo-other", prepare=made,
            script=r"""status=0; "$MADE/zoo-other" || status=$?; echo $status""", **more)
program("busybox", packages="busybox-static", version="busybox", unseen="busybox", script=r"""
busybox sh -c 'busybox seq 1000 | busybox sort -n | busybox sha256sum; exit 3' || echo "status $?"
""")

GO = r"""
export GOCACHE="$MADE/cache" GOFLAGS=-mod=mod GO111MODULE=off
cat > zoo.go <<'end'
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sort"
	"sync"
	"syscall"
)

func main() {
	var group sync.WaitGroup
	var lock sync.Mutex
	sums := []string{}
	for i := 0; i < 200; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			data := make([]byte, 100000+i)
			s := fmt.Sprintf("%x", sha256.Sum256(data))
			lock.Lock()
			sums = append(sums, s)
			lock.Unlock()
		}(i)
	}
	group.Wait()
	sort.Strings(sums)
	fmt.Println(len(sums), sums[0])
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-c)
	for i := 0; i < 10; i++ {
		out, err := exec.Command("echo", "child", fmt.Sprint(i)).Output()
		fmt.Print(string(out), err, "\n")
	}
	CGO
	os.Exit(7)
}
end
"""
program("go-static", packages="golang-go", version="go version", seconds=3, unseen="zoo-go", prepare=GO + r"""
sed -i 's/^\tCGO$//' zoo.go; CGO_ENABLED=0 go build -o zoo-go zoo.go""", script=r""" "$MADE/zoo-go" || echo "status $?" """)
program("go-cgo", packages="golang-go gcc", version="go version", seconds=3, sees="zoo-go", prepare=GO + r"""
sed -i -e 's/^\tCGO$/\tp := C.malloc(12345); C.free(p); fmt.Println(p != nil)/' -e 's/^import (/\/\/ #include <stdlib.h>\nimport "C"\nimport (/' zoo.go
go build -o zoo-go zoo.go""", script=r""" "$MADE/zoo-go" || echo "status $?" """)
program("go-compiler", packages="golang-go", version="go version", seconds=12, limit_s=120, 
        script=GO.replace("$MADE/cache", "$TMPDIR/cache") + r"""sed -i 's/^\tCGO$//' zoo.go; CGO_ENABLED=0 go build -trimpath -ldflags=-buildid= -o zoo zoo.go""")

RUST = r"""
cat > zoo.rs <<'end'
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;
use std::thread;
JEMALLOC
fn main() {
    let threads: Vec<_> = (1..5u64).map(|n| thread::spawn(move || {
        let mut words: HashMap<String, Vec<u64>> = HashMap::new();
        for i in 0..30000u64 { words.entry(format!("{}", i * n * 7919 % 4001)).or_default().push(i); }
        words.values().map(|v| v.len() as u64 * v[0]).sum::<u64>()
    })).collect();
    for t in threads { println!("{}", t.join().unwrap()); }
    let caught = std::panic::catch_unwind(|| { let v: Vec<u32> = Vec::new(); v[std::env::args().count()] });
    println!("{}", caught.is_err());
    println!("{:?}", std::process::Command::new("echo").arg("child").output().unwrap().stdout);
    let _ = Layout::new::<u8>();
    std::process::exit(7);
}
end
"""
JEMALLOC = r"""struct Je; extern "C" { fn mallocx(n: usize, f: i32) -> *mut u8; fn sdallocx(p: *mut u8, n: usize, f: i32); } unsafe impl GlobalAlloc for Je { """ \
    r"""unsafe fn alloc(\&self, l: Layout) -> *mut u8 { mallocx(l.size(), l.align().trailing_zeros() as i32) } """ \
    r"""unsafe fn dealloc(\&self, p: *mut u8, l: Layout) { sdallocx(p, l.size(), l.align().trailing_zeros() as i32) } } """ \
    r"""#[global_allocator] static A: Je = Je;"""
program("rust", packages="rustc", version="rustc --version", sees="zoo-rust", prepare=RUST + r"""
sed -i 's/^JEMALLOC$/#[allow(unused_imports)] use GlobalAlloc as _;/' zoo.rs; rustc -A warnings -O -o zoo-rust zoo.rs""",
        script=r""" "$MADE/zoo-rust" 2>/dev/null || echo "status $?" """)
program("rust-jemalloc", packages="rustc libjemalloc-dev", version="rustc --version", needs="rustc /usr/lib/*/libjemalloc.a",
        sees="zoo-rust", prepare=RUST + r"""
sed -i 's/^JEMALLOC$/""" + JEMALLOC.replace("/", r"\/") + r"""/' zoo.rs
rustc -A warnings -O -L "$(dirname /usr/lib/*/libjemalloc.a)" -l static=jemalloc -l stdc++ -l dl -l m -o zoo-rust zoo.rs
nm zoo-rust > symbols; grep -q ' T malloc$' symbols""", script=r""" "$MADE/zoo-rust" 2>/dev/null || echo "status $?" """)
program("rustc", packages="rustc", version="rustc --version", seconds=4, script=RUST + r"""
sed -i 's/^JEMALLOC$//' zoo.rs; rustc -A warnings -C opt-level=1 --remap-path-prefix "$PWD=." -o zoo-rust zoo.rs; ./zoo-rust 2>/dev/null || echo "status $?"
""")

for word, pattern, package in (("jemalloc", "/usr/lib/*/libjemalloc.so.2", "libjemalloc2"),
                               ("mimalloc", "/usr/lib/*/libmimalloc.so.2.*", "libmimalloc2.0"),
                               ("tcmalloc", "/usr/lib/*/libtcmalloc_minimal.so.4", "libtcmalloc-minimal4")):
    for order, value in (("before", "$allocator:${LD_PRELOAD-}"), ("after", "${LD_PRELOAD-}:$allocator")):
        program("%s-%s" % (word, order), packages=package + " gcc g++ sqlite3", version="dpkg-query -W " + package,
                needs="gcc g++ sqlite3 " + pattern, sees="" if order == "before" else "program",
                prepare=C + CXX + "gcc -O1 -g -pthread -o program program.c; g++ -O1 -o other program.cpp", script=r"""
allocator=$(echo PATTERN | cut -d ' ' -f 1)
run() { LD_PRELOAD=VALUE "$@"; }
run "$MADE/program" || echo "status $?"
run "$MADE/other"
run sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) select sum(x) from c'
seq 100000 | run sort --parallel=2 -r -S 1M | sha256sum
run bash -c '(echo one; (echo two)) | cat; echo $(echo three)'
run /usr/bin/python3 -c 'import threading; t = [threading.Thread(target=lambda: sorted(range(50000), key=str)) for _ in range(4)]
[x.start() for x in t]; [x.join() for x in t]; print("python")'
""".replace("PATTERN", pattern).replace("VALUE", '"%s"' % value))
