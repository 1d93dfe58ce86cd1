/* SPDX-License-Identifier: MIT */
/*
 * keywords.c - names that a field can't have, because a language with stubs uses them for something
 * else
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Words that are not names in C11 or C++20, macros of common headers and compilers, and names that
 * a stub calls.
 */
static const char *const c_words[] = {
	"NULL",      "alignas",      "alignof",       "and",       "and_eq",
	"asm",       "assert",       "atomic_cancel", "auto",      "bitand",
	"bitor",     "bool",         "break",         "case",      "catch",
	"char",      "char16_t",     "char32_t",      "char8_t",   "class",
	"co_await",  "co_return",    "co_yield",      "compl",     "concept",
	"const",     "const_cast",   "consteval",     "constexpr", "constinit",
	"continue",  "decltype",     "default",       "delete",    "do",
	"double",    "dynamic_cast", "else",          "enum",      "errno",
	"explicit",  "export",       "extern",        "false",     "float",
	"for",       "friend",       "goto",          "header",    "i386",
	"if",        "inline",       "int",           "int16_t",   "int32_t",
	"int64_t",   "int8_t",       "linux",         "long",      "memchr",
	"memcpy",    "memset",       "mutable",       "namespace", "new",
	"noexcept",  "not",          "not_eq",        "nullptr",   "operator",
	"or",        "or_eq",        "private",       "protected", "public",
	"register",  "requires",     "restrict",      "return",    "reinterpret_cast",
	"short",     "signed",       "sizeof",        "static",    "static_assert",
	"stderr",    "stdin",        "stdout",        "struct",    "static_cast",
	"switch",    "template",     "this",          "throw",     "thread_local",
	"true",      "try",          "typedef",       "typeid",    "typename",
	"typeof",    "uint16_t",     "uint32_t",      "uint64_t",  "uint8_t",
	"uintptr_t", "union",        "unix",          "unsigned",  "using",
	"virtual",   "void",         "volatile",      "wchar_t",   "while",
	"xor",       "xor_eq",       "BUFSIZ",        "EOF",       "NAN",
	"INFINITY",
};

static const char *const java_words[] = {
	"abstract", "boolean", "byte",      "extends", "final",        "finally",
	"import",   "native",  "interface", "null",    "implements",   "instanceof",
	"package",  "super",   "strictfp",  "throws",  "synchronized", "transient",
};

static const char *const python_words[] = {
	"False", "None",   "True",  "as",     "async",  "await", "def",
	"del",   "elif",   "from",  "except", "global", "in",    "is",
	"pass",  "lambda", "raise", "with",   "yield",  "self",  "nonlocal",
};

static const char *const rust_words[] = {
	"Self",  "become",  "box",   "crate", "dyn",   "fn",   "gen",      "impl",
	"let",   "loop",    "macro", "mod",   "match", "move", "override", "mut",
	"priv",  "pub",     "ref",   "trait", "type",  "use",  "core",     "unsafe",
	"where", "unsized", "Err",   "Ok",    "Some",
};

static const struct {
	const char *language;
	const char *const *words;
	size_t count;
} languages[] = {
	{"C or C++", c_words, COUNT(c_words)},
	{"Java", java_words, COUNT(java_words)},
	{"Python", python_words, COUNT(python_words)},
	{"Rust", rust_words, COUNT(rust_words)},
};

const char *pem_keyword_language(const char *name, int stub)
{
	size_t i, k;

	for (i = 0; i < (stub ? COUNT(languages) : 1); i++) {
		for (k = 0; k < languages[i].count; k++) {
			if (!strcmp(languages[i].words[k], name))
				return languages[i].language;
		}
	}
	return NULL;
}
