/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec.c - execve in the observed program
 *
 * It runs in the program, in place of the C library's, which all others of its kind end in. There
 * is no C library to link with: what it needs is here.
 *
 * Valgrind hands a path on to the kernel as it is. /proc/self/exe would then be Valgrind's own
 * file, so that a program that executes itself would end. The path that it stands for is what
 * readlink says, which Valgrind answers for the program.
 */
#include <valgrind/valgrind.h>

#include <asm/unistd.h>
#include <linux/limits.h>

static long call(long number, long first, long second, long third)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return result;
}

/* What follows a word that a text begins with; a null pointer: it begins with another one. */
static const char *behind(const char *text, const char *word)
{
	while (*word) {
		if (*text++ != *word++)
			return 0;
	}
	return text;
}

static const char *behind_number(const char *text, long number)
{
	long value = 0;
	const char *digit = text;

	for (; *digit >= '0' && *digit <= '9' && value <= number; digit++)
		value = 10 * value + *digit - '0';
	return digit > text && value == number ? digit : 0;
}

static int is_own_file(const char *path)
{
	const char *rest = behind(path, "/proc/"), *process;

	if (!rest)
		return 0;
	process = behind(rest, "self");
	if (!process)
		process = behind(rest, "thread-self");
	if (!process)
		process = behind_number(rest, call(__NR_getpid, 0, 0, 0));
	rest = process ? behind(process, "/exe") : 0;
	return rest && !*rest;
}

int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, execve)(const char *path, char *const arguments[],
						char *const environment[]);

int I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, execve)(const char *path, char *const arguments[],
						char *const environment[])
{
	char file[PATH_MAX];
	OrigFn original;
	long length, result;

	VALGRIND_GET_ORIG_FN(original);
	if (path && is_own_file(path)) {
		length = call(__NR_readlink, (long)path, (long)file, sizeof(file) - 1);
		if (length > 0) {
			file[length] = '\0';
			path = file;
		}
	}
	CALL_FN_W_WWW(result, original, path, arguments, environment);
	return (int)result;
}
