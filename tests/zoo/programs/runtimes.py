# SPDX-License-Identifier: MIT
"""runtimes.py - of the zoo: virtual machines and interpreters, and CPython's own tests"""
from zoo import program

program("node", packages="nodejs", version="node --version", sees="node", seconds=3, script=r"""
cat > zoo.js <<'end'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync } = require('child_process');
const crypto = require('crypto'), zlib = require('zlib');
if (!isMainThread) {
	const words = new Map();
	for (let i = 0; i < 100000; i++) words.set('w' + (i * workerData * 7919 % 5003), { i, text: 'x'.repeat(i % 50) });
	parentPort.postMessage(words.size);
} else {
	let left = 3;
	for (let n = 1; n <= 3; n++)
		new Worker(__filename, { workerData: n }).on('message', size => console.log(size)).on('exit', () => { if (!--left) last(); });
}
async function last() {
	console.log(execFileSync('echo', ['child']).toString().trim());
	console.log(crypto.pbkdf2Sync('zoo', 'salt', 20000, 32, 'sha256').toString('hex'));
	console.log(zlib.gzipSync(Buffer.alloc(1 << 20, 'zoo')).length);
	let garbage = []; for (let i = 0; i < 300000; i++) { garbage.push({ i }); if (i % 1000 == 0) garbage = []; }
	const server = require('net').createServer(s => s.end('hello')).listen(0, '127.0.0.1', () =>
		require('net').connect(server.address().port, '127.0.0.1').on('data', d => console.log(d.toString())).on('close', () => {
			server.close(); process.exitCode = 7; }));
}
end
node zoo.js || echo "status $?"
""")

program("npm", packages="nodejs", version="npm --version", sees="node", seconds=3, script=r"""
echo '{"name":"zoo","version":"1.0.0","scripts":{"hello":"node -p 6*7"}}' > package.json; npm --offline --silent run hello
npm --offline pack --silent
""")

JAVA = r"""
cat > Zoo.java <<'end'
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
public class Zoo {
	public static void main(String[] args) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(4);
		List<Future<Long>> all = new ArrayList<>();
		for (int n = 1; n <= 8; n++) {
			final int k = n;
			all.add(pool.submit(() -> {
				Map<String, List<byte[]>> m = new HashMap<>();
				for (int i = 0; i < 200000; i++)
					m.computeIfAbsent("w" + i * k % 997, x -> new LinkedList<>()).add(new byte[i % 100]);
				return m.values().stream().mapToLong(List::size).sum();
			}));
		}
		for (Future<Long> f : all)
			System.out.println(f.get());
		pool.shutdown();
		System.gc();
		System.out.println(IntStream.range(0, 1000000).parallel().mapToLong(i -> i % 7).sum());
		try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("null"); }
		Process p = new ProcessBuilder("echo", "child").start();
		System.out.println(new String(p.getInputStream().readAllBytes()).trim() + p.waitFor());
		Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
		System.exit(7);
	}
}
end
"""
for word, flags in (("g1", "-XX:+UseG1GC"), ("zgc", "-XX:+UseZGC"), ("parallel", "-XX:+UseParallelGC"), ("shenandoah", "-XX:+UseShenandoahGC")):
    program("java-" + word, packages="default-jdk-headless", version="java -version", needs="java javac", sees="java", seconds=4,
            prepare=JAVA + "javac Zoo.java", script=r"""
java -Xmx300m FLAGS -cp "$MADE" Zoo || echo "status $?" """.replace("FLAGS", flags))
program("javac", packages="default-jdk-headless", version="javac -version", sees="javac", seconds=4, script=JAVA + "javac Zoo.java; ls")

program("php", packages="php-cli", version="php --version", sees="php", script=r"""
php -r '$a = []; for ($i = 0; $i < 200000; $i++) $a["k" . $i * 7919 % 10007] = str_repeat("x", $i % 60); ksort($a); echo count($a), key($a), "\n";
echo shell_exec("echo child"), preg_match_all("/k(\d)/", implode(",", array_keys($a))), "\n"; exit(7);' || echo "status $?"
""")

program("ruby", packages="ruby", version="ruby --version", sees="ruby", script=r"""
ruby -e 'h = {}; 200000.times { |i| h["k#{i * 7919 % 10007}"] = "x" * (i % 60) }; puts h.size; GC.start
puts 4.times.map { |n| Thread.new { (1..50000).sum * n } }.map(&:value).inspect; puts `echo child`; puts Process.wait2(fork { exit! 3 })[1].exitstatus; exit 7' || echo "status $?"
""")

program("lua", packages="lua5.4", version="lua5.4 -v", sees="lua5.4", script=r"""
lua5.4 -e 'local t = {} for i = 1, 200000 do t["k" .. i * 7919 % 10007] = ("x"):rep(i % 60) end local n = 0 for _ in pairs(t) do n = n + 1 end print(n)
local ok = pcall(error, "e") print(ok) print(io.popen("echo child"):read("a")) local c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(c(), c(), c())'
""")

program("python", packages="python3", version="/usr/bin/python3 --version", sees="python3", script=r"""
cat > zoo.py <<'end'
import asyncio, concurrent.futures, hashlib, json, mmap, multiprocessing, os, signal, sqlite3, subprocess, threading
def square(n): return n * n
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool: print(pool.map(square, range(10)))
    with concurrent.futures.ThreadPoolExecutor(4) as pool: print(sum(pool.map(square, range(5000))))
    async def main(): print(await asyncio.gather(*[asyncio.sleep(0.01, n) for n in range(5)]))
    asyncio.run(main())
    print(subprocess.run("echo child; exit 3", shell=True, capture_output=True))
    signal.signal(signal.SIGALRM, lambda *_: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
    print(hashlib.sha256(json.dumps({str(n): list(range(n % 20)) for n in range(20000)}).encode()).hexdigest())
    print(sqlite3.connect(":memory:").execute("select 6 * 7").fetchone(), mmap.mmap(-1, 4096)[:2])
    os._exit(7)
end
/usr/bin/python3 -B -u zoo.py || echo "status $?"
""")

# What each test of a module comes to, so that one that changes its result shows.
for module, seconds in (("test_mmap", 1), ("test_signal", 50), ("test_threading", 15), ("test_subprocess", 32), ("test_socket", 40),
                        ("test_ctypes", 3), ("test_thread", 3), ("test_fork1", 3), ("test_os", 6), ("test_posix", 3), ("test_selectors", 3),
                        ("test_faulthandler", 15), ("test_asyncio", 80), ("test_multiprocessing_fork", 90), ("test_multiprocessing_spawn", 120),
                        ("test_multiprocessing_forkserver", 120)):
    program("python-" + module, packages="libpython3.11-testsuite", version="/usr/bin/python3.11 --version",
            needs="/usr/bin/python3.11 /usr/lib/python3.11/test/test_ctypes.py /usr/lib/python3.11/test/test_asyncio", sees="python3.11",
            seconds=seconds, limit_s=60 + 5 * seconds, user="nobody", script=r"""
cd "$TMPDIR"; status=0
/usr/bin/python3.11 -B -m test -u none --junit-xml results.xml MODULE >log 2>&1 || status=$?
/usr/bin/python3.11 -c 'import xml.etree.ElementTree as tree
for case in sorted("%s %s %s" % (c.get("name"), c.get("result"), " ".join(e.tag for e in c if e.tag in ("failure", "error", "skipped")))
                   for c in tree.parse("results.xml").iter("testcase")): print(case)' || status=1
[ $status = 0 ] || tail -n 60 log
echo "status $status"
""".replace("MODULE", module))
