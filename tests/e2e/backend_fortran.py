# SPDX-License-Identifier: MIT
"""
backend_fortran.py - what is generated for Fortran 2008: modules compile without a warning, and say what they are told

Not here: the C stubs below them (codegen_stubs.py), the polyglot program (polyglot.py).
"""
import os
import re

from standin import ABI, compiled, disabled_bytes, generate, generate_all, library, played
from tap import equal, need, run, run_all, test, tmp

LONG_S = 8

PROGRAM = r"""
program wide
  use, intrinsic :: iso_c_binding
  use pem_wide
  implicit none
  interface
    subroutine standin_enable(on) bind(C)
      import :: c_int
      integer(c_int), value :: on
    end subroutine
  end interface
  integer(c_int16_t) :: shorts(5) = [-1_c_int16_t, 2_c_int16_t, -3_c_int16_t, 4_c_int16_t, -5_c_int16_t]
  integer(c_int8_t) :: none(0)
  character(len=:), allocatable :: exact
  integer :: i

  call pem_notify_wide_numbers(state_lowest, -1_c_int16_t, -1_c_int8_t, big_one_most, low_least, &
    ibset(int(mask_half, c_int8_t), 7), int(z'300', c_int16_t), -1_c_int64_t, -0.5_c_float)
  call pem_notify_wide_numbers(len=2_c_int8_t, size=1_c_int16_t, state=state_eagain, most=big_one_none, &
    least=0_c_int64_t, mask=0_c_int8_t, wider=0_c_int16_t, place=0_c_int64_t, half=0.0_c_float)

  call pem_notify_wide_texts('', '1234567', repeat('x', 2999))
  exact = repeat('y', 2998)
  call pem_notify_wide_texts('a', 'abc', exact)
  call pem_notify_wide_texts('ab', '12345678', '')
  exact = 'ä'
  call pem_notify_wide_texts(exact, '123456ä', '12345€')
  call pem_notify_wide_texts('a    ', 'two of ', '  in front, and  between  ')
  call pem_notify_wide_texts(' ', 'ab' // char(0) // 'cd', repeat(' ', 5000))

  call pem_notify_wide_lists([(int(i, c_int8_t), i = 1, 5)], shorts(1:2), [0.5_c_float], [0.25_c_double, -1.0_c_double], &
    [integer(c_int64_t) ::], [1.5_c_float, -1.5_c_float], [1_c_int64_t, 2_c_int64_t, 3_c_int64_t])
  call pem_notify_wide_lists(none, shorts(1:5:2), [real(c_float) ::], [real(c_double) ::], [7_c_int64_t], &
    [0.0_c_float, 0.0_c_float], [4_c_int64_t, 0_c_int64_t, 0_c_int64_t])
  if (pem_enabled_wide_nothing()) call pem_notify_wide_nothing()
  call standin_enable(0)
  if (pem_enabled_wide_nothing()) error stop 'enabled'
  call pem_notify_wide_nothing()
  call pem_notify_wide_texts('a', 'b', 'c')
  call standin_enable(1)
  call pem_notify_wide_idle_begin()
  call pem_notify_wide_idle_end()
  deallocate (exact)
end program
"""

TEXTS = [("", "1234567", "x" * 2999), ("a", "abc", "y" * 2998), ("a", "1234567", ""), ("", "123456", "12345\u20ac"),
         ("a", "two of", "  in front, and  between"), ("", "ab", "")]


def build(*flags):
    need("gfortran")
    folder = tmp()
    generate("fortran", folder)
    at = {name: os.path.join(folder, name) for name in ("program.f90", "program", "wide.f90", "symbols.o", "wide_symbols.c")}
    with open(at["program.f90"], "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    compiled(["gcc", "-std=gnu11", "-g", *flags, "-I" + ABI, "-c", at["wide_symbols.c"], "-o", at["symbols.o"]])
    compiled(["gfortran", "-std=f2008", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g",
              *flags, "-J", folder, at["wide.f90"], at["program.f90"], at["symbols.o"], "-o", at["program"],
              *library(folder)])
    return at["program"]


def check_values(program):
    _, records = played(program)
    equal(records[0], ("Numbers", {"state": -128, "size": 65535, "len": 255, "most": 2 ** 64 - 1, "least": -2 ** 63,
                                   "mask": 0x8f, "wider": 0x300, "place": 2 ** 64 - 1, "half": -0.5}), "numbers")
    equal(records[1][1], {"state": 11, "size": 1, "len": 2, "most": 0, "least": 0, "mask": 0, "wider": 0, "place": 0,
                          "half": 0}, "numbers by keyword")
    equal([tuple(values.values()) for _, values in records[2:8]], TEXTS, "texts")
    equal(records[8][1], {"bytes": [1, 2, 3], "shorts": [-1, 2], "floats": [0.5], "doubles": [0.25, -1], "places": [],
                          "pair": [1.5, -1.5], "three": [1, 2, 3]}, "lists")
    equal(records[9][1], {"bytes": [], "shorts": [-1, -3, -5], "floats": [], "doubles": [], "places": [7],
                          "pair": [0, 0], "three": [4, 0, 0]}, "a list with gaps, and empty ones")
    equal([specifier for specifier, _ in records[10:]], ["Nothing", "IdleBegin", "IdleEnd"], "the rest")


@test
def values():
    "what Fortran raises arrives field by field, unsigned numbers, blanks and lists with gaps among it"
    check_values(build("-O2"))


@test
def values_under_sanitizers():
    "the same without optimization, under the address sanitizer"
    check_values(build("-O0", "-fsanitize=address"))


@test
def all_modules():
    "the modules of all specs compile as Fortran 2008 without a warning, in lines of at most 132 characters"
    need("gfortran")
    folder = tmp()
    providers = generate_all("fortran", folder)
    assert len(providers) > 10, providers
    for name in providers:
        source = os.path.join(folder, name + ".f90")
        with open(source, encoding="utf-8") as f:
            text = f.read()
        equal([line for line in text.splitlines() if len(line.encode()) > 132], [], "long lines of " + name)
        code = re.sub(r"!.*", "", text)
        equal([word for word in re.findall(r"\w+", code) if len(word) > 63], [], "long names of " + name)
        compiled(["gfortran", "-std=f2008", "-Wall", "-Wextra", "-pedantic", "-Werror", "-J", folder, "-fsyntax-only", source])


def all_symbols(compiler):
    need(compiler)
    folder = tmp()
    providers = generate_all("fortran", folder)
    sources = [os.path.join(folder, name + "_symbols.c") for name in providers]
    for source in filter(os.path.exists, sources):
        compiled([compiler, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wmissing-prototypes",
                  "-Werror", "-I" + ABI, "-fsyntax-only", source])


@test
def all_symbols_gcc():
    "the symbols of all specs compile without a warning with gcc"
    all_symbols("gcc")


@test
def all_symbols_clang():
    "the symbols of all specs compile without a warning with clang"
    all_symbols("clang")


@test
def disabled_calls_nothing():
    "a disabled stub of Fortran calls no C, for its page is a variable, and takes at most 64 bytes of instructions"
    need("gfortran", "nm", "objdump")
    folder = tmp()
    generate("fortran", folder)
    compiled(["gfortran", "-O2", "-J", folder, "-c", folder + "/wide.f90", "-o", folder + "/wide.o"])
    rc, out, err = run(["nm", "-u", folder + "/wide.o"])
    equal(rc, 0, "nm: " + err)
    equal([name for name in out.split() if name != "U" and not name.startswith("pem_raise_")], [], "what else is called")
    if os.uname().machine == "x86_64":
        found = [disabled_bytes(folder + "/wide.o", "__pem_wide_MOD_pem_notify_wide_" + name) for name in ("texts", "nothing")]
        assert max(found) <= 64, found


run_all()
