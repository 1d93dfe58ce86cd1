# SPDX-License-Identifier: MIT
"""
backend_cxx.py - what is generated for C++: it compiles without a warning, its guards end what they begin, and it reads
no byte that it was not given

Not here: the C stubs below it (codegen_stubs.py), the polyglot program (polyglot.py).
"""
import os

from standin import ABI, compiled, disabled_bytes, generate, generate_all, library, played
from tap import equal, need, run_all, skip, test, tmp

LONG_S = 13

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-I" + ABI]

PROGRAM = r"""
#include "wide.hpp"
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

extern "C" void standin_enable(int on);

using pem::wide::Mask;
using pem::wide::State;

static_assert(!std::is_copy_constructible_v<pem::wide_job_scope> && !std::is_move_constructible_v<pem::wide_job_scope>);
static_assert(std::is_nothrow_constructible_v<pem::wide_idle_scope>);
static_assert(sizeof(pem::wide::big_one) == 8 && sizeof(State) == 1);
static_assert(static_cast<std::uint64_t>(pem::wide::big_one::most) == UINT64_MAX);
static_assert((Mask::half & ~Mask::half) == Mask{} && (Mask::half ^ Mask::half) == Mask{});

/* Text whose bytes are all that its memory has: reading more is an error that the sanitizer finds. */
struct exact {
	explicit exact(std::string_view text) : bytes(new char[text.size()]), size(text.size())
	{
		text.copy(bytes.get(), size);
	}
	operator std::string_view() const
	{
		return {bytes.get(), size};
	}
	std::unique_ptr<char[]> bytes;
	std::size_t size;
};

static void numbers()
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	pem::notify_wide_numbers(State::lowest, 65535, 255, pem::wide::big_one::most, pem::wide::low::least,
				 Mask::half | Mask::top, static_cast<Mask>(0x300), 0xffffffffffffffff, -0.5f);
#pragma GCC diagnostic pop
}

static void texts()
{
	pem::notify_wide_texts("", "1234567", std::string(2999, 'x'));
	pem::notify_wide_texts(exact("a"), exact("abc"), exact(std::string(2998, 'y')));
	pem::notify_wide_texts(exact("ab"), exact("12345678"), exact(""));
	pem::notify_wide_texts(exact("\u00e4"), exact("123456\u00e4"), exact("12345\u20ac")); /* the last byte does not fit */
	pem::notify_wide_texts(exact("\u00e4x"), exact("1234567\u00e4"), exact("\u20ac"));
	pem::notify_wide_texts(std::string_view("\0a", 2), std::string_view("ab\0cd", 5), std::string_view());
}

static void lists()
{
	const std::vector<std::uint8_t> bytes = {1, 2, 3, 4, 5};
	const std::int16_t shorts[] = {-1, 2};
	const std::array<float, 1> floats = {0.5f};
	const std::unique_ptr<double[]> doubles(new double[2]{0.25, -1});

	pem::notify_wide_lists(bytes, shorts, floats, {doubles.get(), 2}, {}, {1.5f, -1.5f}, {1, 2, 3});
	pem::notify_wide_lists({}, {}, {}, {nullptr, 0}, std::vector<std::uint64_t>{7}, {}, {4});
	if (pem::enabled_wide_nothing())
		pem::notify_wide_nothing();
}

static int early(int why)
{
	const std::vector<std::uint16_t> more = {9};
	pem::wide_job_scope job(exact("caf\u00e9s"), {1, 2}, more, State::EAGAIN_);
	pem::wide_idle_scope idle;

	if (why == 0)
		return 1;
	if (why == 1)
		throw std::runtime_error("as tried");
	standin_enable(0);
	if (pem::enabled_wide_nothing())
		pem::notify_wide_nothing();
	return 2;
}

int main()
{
	numbers();
	texts();
	lists();
	early(0);
	try {
		early(1);
	} catch (const std::runtime_error &error) {
		std::puts(error.what());
	}
	early(2); /* disabled in between: no ends */
	{
		pem::wide_idle_scope idle; /* enabled in between: no begin */
		standin_enable(1);
	}
}
"""

TEXTS = [("", "1234567", "x" * 2999), ("a", "abc", "y" * 2998), ("a", "1234567", ""), ("", "123456", "12345\u20ac"),
         ("", "1234567", "\u20ac"), ("", "ab", "")]
BEGIN = ("JobBegin", {"who": "caf\u00e9", "at": [1, 2], "more": [9], "state": 11})
END = ("JobEnd", {"who": "caf\u00e9", "at": [1, 2], "state": 11})
IDLE_BEGIN, IDLE_END = ("IdleBegin", {}), ("IdleEnd", {})


def build(compiler, *flags):
    need(compiler)
    folder = tmp()
    generate("c++", folder)
    source, program = os.path.join(folder, "program.cpp"), os.path.join(folder, "program")
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM.replace("EAGAIN_", "eagain"))
    compiled([compiler, "-std=c++17", *STRICT, *flags, "-I" + folder, source, "-o", program, *library(folder)])
    return program


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
def values_by_gcc():
    "what C++ raises arrives field by field, guards end by return and exception, under sanitizers"
    check_values(build("g++", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"))


@test
def values_by_clang():
    "the same, optimized by clang"
    check_values(build("clang++", "-O2"))


@test
def small_at_the_call_site():
    "a disabled stub of C++ takes at most 64 bytes of instructions where it is called"
    need("g++", "clang++", "objdump")
    if os.uname().machine != "x86_64":
        skip("the instructions looked for are those of x86-64")
    folder = tmp()
    generate("c++", folder)
    with open(folder + "/small.cpp", "w", encoding="utf-8") as f:
        f.write('#include "wide.hpp"\nextern "C" void texts(std::string_view s)\n{\n\tpem::notify_wide_texts(s, "", s);\n}\n'
                'extern "C" void nothing()\n{\n\tpem::notify_wide_nothing();\n}\n')
    for compiler in ("g++", "clang++"):
        compiled([compiler, "-std=c++17", "-O2", *STRICT, "-I" + folder, "-c", folder + "/small.cpp", "-o", folder + "/small.o"])
        found = [disabled_bytes(folder + "/small.o", name) for name in ("texts", "nothing")]
        assert max(found) <= 64, (compiler, found)


def all_compile(compiler):
    need(compiler)
    folder = tmp()
    providers = generate_all("c++", folder)
    assert len(providers) > 10, providers
    source = os.path.join(folder, "all.cpp")
    with open(source, "w", encoding="utf-8") as f:
        f.write("".join('#include "%s.hpp"\n' % name for name in providers * 2) + "int main()\n{\n}\n")
    for standard in ("c++17", "c++20"):
        compiled([compiler, "-std=" + standard, *STRICT, "-I" + folder, "-fsyntax-only", source])


@test
def all_headers_gcc():
    "the headers of all specs compile together, without a warning, as C++17 and C++20 with g++"
    all_compile("g++")


@test
def all_headers_clang():
    "the headers of all specs compile together, without a warning, as C++17 and C++20 with clang++"
    all_compile("clang++")


run_all()
