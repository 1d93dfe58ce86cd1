# SPDX-License-Identifier: MIT
"""
backend_rust.py - what is generated for Rust: crates build offline and without a warning, and say what they are told

Not here: the C stubs below them (codegen_stubs.py), the polyglot program (polyglot.py).
"""
import os
import shutil

from standin import ABI, compiled, disabled_bytes, generate, generate_all, library, played
from tap import equal, need, run, run_all, skip, test, tmp

LONG_S = 28

PROGRAM = r"""
use pem_wide::*;

extern "C" {
    fn standin_enable(on: i32);
}

fn enable(on: bool) {
    unsafe { standin_enable(i32::from(on)) }
}

#[allow(deprecated)]
fn numbers() {
    notify_wide_numbers(State::LOWEST, 65535, 255, BigOne::MOST, Low::LEAST, Mask::HALF | Mask::TOP, Mask(0x300), u64::MAX, -0.5);
}

fn texts() {
    notify_wide_texts("", "1234567", &"x".repeat(2999));
    notify_wide_texts("a", "abc", &"y".repeat(2998));
    notify_wide_texts("ab", "12345678", "");
    notify_wide_texts("\u{e4}", "123456\u{e4}", "12345\u{20ac}");
    notify_wide_texts("a", &"two of them"[..6], &"between the lines"[8..11]);
    notify_wide_texts("\0a", "ab\0cd", &String::new());
}

fn lists() {
    let shorts = [-1, 2, -3];

    notify_wide_lists(&[1, 2, 3, 4, 5], &shorts[..2], &[0.5], &[0.25, -1.0], &[], &[1.5, -1.5], &[1, 2, 3]);
    notify_wide_lists(&[], &[], &[], &Vec::new(), &vec![7], &[0.0; 2], &[4, 0, 0]);
    if enabled_wide_nothing() {
        notify_wide_nothing();
    }
}

fn early(why: u32) -> u32 {
    let name = String::from("caf\u{e9}s");
    let _job = WideJobScope::new(&name, &[1, 2], &[9], State::EAGAIN);
    let _idle = WideIdleScope::new();

    match why {
        0 => return 1,
        1 => panic!("as tried"),
        _ => enable(false),
    }
    2
}

fn main() {
    numbers();
    texts();
    lists();
    early(0);
    std::panic::set_hook(Box::new(|_| println!("as tried")));
    assert!(std::panic::catch_unwind(|| early(1)).is_err());
    early(2);
    assert!(!enabled_wide_nothing()); // disabled in between: no ends
    let _idle = WideIdleScope::new(); // enabled in between: no begin
    enable(true);
}
"""

TEXTS = [("", "1234567", "x" * 2999), ("a", "abc", "y" * 2998), ("a", "1234567", ""), ("", "123456", "12345\u20ac"),
         ("a", "two of", "the"), ("", "ab", "")]
BEGIN = ("JobBegin", {"who": "caf\u00e9", "at": [1, 2], "more": [9], "state": 11})
END = ("JobEnd", {"who": "caf\u00e9", "at": [1, 2], "state": 11})
IDLE_BEGIN, IDLE_END = ("IdleBegin", {}), ("IdleEnd", {})


def cargo(folder, *words, **env):
    """Run cargo where no registry can be reached; its output."""
    need("cargo", "cc", "ar")
    rc, out, err = run(["cargo", *words, "--offline", "--quiet"], cwd=folder, timeout=110, env=dict(
        env, CARGO_TARGET_DIR=os.path.join(folder, "target"), CARGO_HOME=os.environ.get("CARGO_HOME")))
    return rc, out + err


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def build():
    """The program, as a crate that depends on pem_wide by its path."""
    folder = tmp()
    generate("rust", folder)
    write(folder, "program/Cargo.toml", '[package]\nname = "program"\nversion = "0.1.0"\nedition = "2021"\n'
                                        '[dependencies]\npem_wide = { path = "../pem_wide" }\n[workspace]\n')
    write(folder, "program/src/main.rs", PROGRAM)
    need("cargo")
    flags = " ".join("-C link-arg=" + flag for flag in library(folder))
    equal(cargo(folder + "/program", "build", "--release", PEM_INCLUDE=ABI, RUSTFLAGS="-D warnings " + flags), (0, ""), "cargo build")
    return os.path.join(folder, "program/target/release/program")


def check_values(program):
    said, records = played(program)
    equal(said, "as tried", "output")
    equal(records[0], ("Numbers", {"state": -128, "size": 65535, "len": 255, "most": 2 ** 64 - 1, "least": -2 ** 63,
                                   "mask": 0x8f, "wider": 0x300, "place": 2 ** 64 - 1, "half": -0.5}), "numbers")
    equal([tuple(values.values()) for _, values in records[1:7]], TEXTS, "texts")
    equal(records[7][1], {"bytes": [1, 2, 3], "shorts": [-1, 2], "floats": [0.5], "doubles": [0.25, -1], "places": [],
                          "pair": [1.5, -1.5], "three": [1, 2, 3]}, "lists")
    equal(records[8][1], {"bytes": [], "shorts": [], "floats": [], "doubles": [], "places": [7], "pair": [0, 0],
                          "three": [4, 0, 0]}, "short lists")
    equal(records[9], ("Nothing", {}), "no fields")
    equal(records[10:], [BEGIN, IDLE_BEGIN, IDLE_END, END] * 2 + [BEGIN, IDLE_BEGIN, IDLE_END], "intervals")


@test
def values():
    "what Rust raises arrives field by field, and guards end by return and panic"
    check_values(build())


@test
def all_crates():
    "the crates of all specs build offline, without a warning, and clippy finds nothing"
    need("cargo")
    folder = tmp()
    providers = generate_all("rust", folder)
    assert len(providers) > 10, providers
    write(folder, "Cargo.toml", '[workspace]\nmembers = ["pem_*"]\nresolver = "2"\n')
    verb = "clippy" if shutil.which("cargo-clippy") else "check"
    equal(cargo(folder, verb, "--workspace", PEM_INCLUDE=ABI, CFLAGS="-O0", RUSTFLAGS="-D warnings"), (0, ""), verb)


@test
def build_script_says_what_is_missing():
    "a crate that can't be built says which program or header is missing, and what would mend it"
    need("cargo")
    folder = tmp()
    generate("rust", folder)
    rc, said = cargo(folder + "/pem_wide", "build", PEM_INCLUDE=ABI, CC="no-such-compiler")
    assert rc and "'no-such-compiler' can't be run" in said and "(CC)" in said, said
    rc, said = cargo(folder + "/pem_wide", "build", PEM_INCLUDE="/nonexistent")
    if not rc:
        skip("the compiler finds pem's headers by itself: they are installed")
    assert "PEM_INCLUDE=folder" in said, said


@test
def small_at_the_call_site():
    "a disabled stub of Rust takes at most 64 bytes of instructions where it is called"
    need("rustc", "objdump")
    if os.uname().machine != "x86_64":
        skip("the instructions looked for are those of x86-64")
    folder = tmp()
    generate("rust", folder)
    write(folder, "small.rs", '#![no_std]\n#[no_mangle]\npub fn texts(s: &str) { pem_wide::notify_wide_texts(s, "", s) }\n'
                              '#[no_mangle]\npub fn nothing() { pem_wide::notify_wide_nothing() }\n')
    rlib, rustc = folder + "/libpem_wide.rlib", ["rustc", "--edition", "2021", "-D", "warnings", "-O"]
    compiled([*rustc, "--crate-type", "rlib", "--crate-name", "pem_wide", folder + "/pem_wide/src/lib.rs", "-o", rlib])
    compiled([*rustc, "--crate-type", "rlib", "--emit", "obj", "--extern", "pem_wide=" + rlib, folder + "/small.rs",
              "-o", folder + "/small.o"])
    found = [disabled_bytes(folder + "/small.o", name) for name in ("texts", "nothing")]
    assert max(found) <= 64, found


@test
def needs_no_std():
    "the library of a crate needs neither std nor alloc"
    need("rustc")
    folder = tmp()
    generate("rust", folder)
    with open(folder + "/pem_wide/src/lib.rs", encoding="utf-8") as f:
        text = f.read()
    assert "#![no_std]" in text and "std::" not in text.replace("pem_std::", "") and "alloc::" not in text
    compiled(["rustc", "--edition", "2021", "-D", "warnings", "--crate-type", "rlib", "--crate-name", "pem_wide",
              folder + "/pem_wide/src/lib.rs", "-o", folder + "/libpem_wide.rlib"])


run_all()
