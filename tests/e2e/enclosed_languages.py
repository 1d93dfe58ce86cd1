# SPDX-License-Identifier: MIT
"""enclosed_languages: probes around code, in Python, Java, Fortran and Rust"""
import os
import shutil

from enclosing import records, values
from tap import BUILD, ROOT, equal, need, run, run_all, skip, test, tmp

# The same in each language: 100 executions, of which each tenth is measured, and 3 of fresh pages.
EXPECTED = {("Cnt", "count"): [10] * 10, ("Tpt", "count"): [10] * 10, ("Flt", "faults"): [20, 20, 20]}
PYTHON = """import mmap
import sys
sys.path.insert(0, %r)
import probes
for i in range(100):
    with probes.cnt(1, 10), probes.tpt(2, sc=10):
        with probes.lat(3, 10):
            pass
for i in range(4):
    memory = mmap.mmap(-1, 20 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    with probes.flt(4):
        for page in range(20):
            memory[page * 4096] = 1
probes.cnt(9).__exit__()
"""
FORTRAN = """program probes
  use iso_c_binding
  implicit none
  interface
    subroutine enter(by, id, sc) bind(C, name='pem_probe__enter')
      import c_int
      integer(c_int), value :: by, id, sc
    end subroutine
    subroutine leave(by, id) bind(C, name='pem_probe__leave')
      import c_int
      integer(c_int), value :: by, id
    end subroutine
  end interface
  integer :: i
  do i = 1, 100
    call enter(0, 1, 10)
    call enter(2, 2, 10)
    call enter(1, 3, 10)
    call leave(1, 3)
    call leave(2, 2)
    call leave(0, 1)
  end do
  call leave(0, 9)
end program
"""
JAVA = """import pem.Probe;
public class Probes {
	public static void main(String[] arguments) {
		Probe cnt = Probe.cnt(1, 10), tpt = Probe.tpt(2, 10), lat = Probe.lat(3, 10);
		for (int i = 0; i < 100; i++)
			try (Probe a = cnt.enter(); Probe b = tpt.enter(); Probe c = lat.enter()) { }
		Probe.cnt(9, 1).close();
		for (int counter : new int[] {-1, 16})
			try {
				Probe.perfcntr(counter, 9, 1);
				System.out.println("counter " + counter);
			} catch (IllegalArgumentException e) { }
	}
}
"""
RUST = """extern "C" {
    fn pem_probe__enter(by: u32, id: u32, sc: u32);
    fn pem_probe__leave(by: u32, id: u32);
}
fn main() {
    for _ in 0..100 {
        unsafe {
            pem_probe__enter(0, 1, 10);
            pem_probe__enter(2, 2, 10);
            pem_probe__enter(1, 3, 10);
            pem_probe__leave(1, 3);
            pem_probe__leave(2, 2);
            pem_probe__leave(0, 1);
        }
    }
    unsafe { pem_probe__leave(0, 9) };
}
"""


def language_holds(*command):
    _, found = records(*command)
    for (event, field), wanted in EXPECTED.items():
        number = {"Cnt": 1, "Tpt": 2, "Flt": 4}[event]
        got = values(found, event, field, number)
        if event != "Flt" or got:  # the first one's may have one of ours
            equal(got[1:] if event == "Flt" else got, wanted, event)
    equal(len(values(found, "Lat", "cycles", 3)), 10, "latencies")
    equal([row for _, row in found if row["id"] == "9"], [], "records of an end without begin")
    return {name for name, _ in found}


@test
def python_has_probes():
    "the same by 'with' in Python, where libpem is and where it is not"
    script = os.path.join(tmp(), "script.py")
    with open(script, "w", encoding="ascii") as out:
        out.write(PYTHON % (ROOT + "/libpem/python/pemapi"))
    equal(run(["python3", script]), (0, "", ""), "alone")
    assert "Flt" in language_holds("python3", script)


@test
def java_has_probes():
    "the same by a class in Java: with the agent, with the library's folder alone, and without libpem"
    if not os.path.exists(BUILD + "/lib/libpem-jvm.so"):
        skip("libpem-jvm.so is not built: jvmti.h is missing (default-jdk-headless)")
    need("java", "javac")
    folder = tmp()
    with open(folder + "/Probes.java", "w", encoding="ascii") as out:
        out.write(JAVA)
    rc, _, err = run(["javac", "-d", folder, folder + "/Probes.java", ROOT + "/libpem/jvm/pem/Probe.java"])
    equal(rc, 0, err)
    agent, path = "-agentpath:" + BUILD + "/lib/libpem-jvm.so", "-Djava.library.path=" + BUILD + "/lib"
    for option in (agent, path):
        equal(run(["java", option, "-cp", folder, "Probes"]), (0, "", ""), "alone, " + option)
        language_holds("java", option, "-cp", folder, "Probes")
    equal(run(["java", "-cp", folder, "Probes"]), (0, "", ""), "without the library")


@test
def compiled_languages_have_probes():
    "the same by two functions of libpem in Fortran and Rust"
    tried = 0
    for compiler, text, suffix in (("gfortran", FORTRAN, ".f90"), ("rustc", RUST, ".rs")):
        if not shutil.which(compiler) or run([compiler, "--version"])[0]:  # rustup needs a home
            continue
        source, path = os.path.join(tmp(), "other" + suffix), os.path.join(tmp(), "other")
        with open(source, "w", encoding="ascii") as out:
            out.write(text)
        options = ["-L", BUILD + "/lib", "-lpem", "-C", "link-arg=-Wl,-rpath," + BUILD + "/lib"] if compiler == "rustc" else \
            ["-L" + BUILD + "/lib", "-lpem", "-Wl,-rpath," + BUILD + "/lib"]
        rc, _, err = run([compiler, "-o", path, source, *options])
        equal(rc, 0, compiler + " (%s)" % err)
        equal(run([path]), (0, "", ""), "alone")
        language_holds(path)
        tried += 1
    if not tried:
        skip("neither gfortran nor rustc is installed")


run_all()
