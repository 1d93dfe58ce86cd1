/* SPDX-License-Identifier: MIT */
/*
 * functions.c - functions with parameters of all kinds, called five times each: probe_function.py
 * compiles it in several ways, and knows what they are called with
 */
#include <stdio.h>
#include <string.h>

/* Functions are here to be found, and parameters to be passed. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

struct pair {
	int left, right;
};
struct large {
	long words[4];
};
enum sign { MINUS = -1, PLUS = 1 };

static char texts[2][8] = {"one", ""};
APART int target(int a, const char *s)
{
	__asm__ volatile("" : : "r"(a), "r"(s) : "memory");
	return -a;
}
APART long wide(signed char c, unsigned short h, unsigned u, _Bool b, enum sign e, int *p,
		int seventh, const char *eighth)
{
	__asm__ volatile("" : : "r"(p), "r"(eighth) : "memory");
	return c + h + u + b + e + seventh;
}
APART int mixed(int first, double d, int after, struct pair pair, int last)
{
	__asm__ volatile("" : : "r"(first), "r"(last) : "memory");
	return first + (int)d + after + pair.left + last;
}
APART struct large make(int x)
{
	struct large it = {{x}};

	__asm__ volatile("" : : "r"(&it) : "memory");
	return it;
}
APART const char *name(int i)
{
	return texts[i & 1];
}
APART void nothing(void)
{
	__asm__ volatile("");
}
static __attribute__((noinline)) int clone(int unused, int used, const int *by)
{
	__asm__ volatile("" : : "r"(used) : "memory");
	return used + *by;
}
int main(int argc, char **argv)
{
	const char *given[] = {texts[0], texts[1], NULL, (const char *)1, texts[0]};
	int i, sum = 0;

	memset(texts[1] + 1, 'x', 2);
	for (i = 0; i < 5; i++) {
		sum += target(i - 2, given[i]);
		sum += (int)wide(-1, 65535, 4000000000u, 1, MINUS, &sum, -7, texts[0]);
		sum += mixed(i, 1.5, -3, (struct pair){8, 9}, -5);
		sum += (int)make(i).words[0];
		sum += name(i)[0];
		sum += clone(argc, 100 + i, &i);
		nothing();
	}
	return argv[0] == NULL && sum;
}
