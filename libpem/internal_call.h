/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* internal_call.h - a system call of pem's in a program, marked as such for the kernel's events */
#ifndef PEM_INTERNAL_CALL_H
#define PEM_INTERNAL_CALL_H

#include <pem/internal.h>

/*
 * Make a system call of up to six arguments without the C library, marked as pem/internal.h says.
 * Returns the kernel's result: from -4095 to -1 it is an error. Async-signal-safe.
 */
static inline __attribute__((always_inline)) long
pem_internal_syscall(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ __volatile__("leaq 1f(%%rip), %%rbx\n\t"
			     "movabsq %[mark], %%r11\n\t"
			     "xorq %%r11, %%rbx\n\t"
			     "syscall\n"
			     "1:"
			     : "=a"(result)
			     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			       "r"(r9), [mark] "i"(PEM_INTERNAL_CALL)
			     : "rbx", "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long result __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ __volatile__("adr x15, 1f\n\t"
			     "eor x15, x15, %[mark]\n\t"
			     "svc #0\n"
			     "1:"
			     : "+r"(result)
			     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4),
			       "r"(x5), [mark] "r"(PEM_INTERNAL_CALL)
			     : "x15", "memory");
#endif
	return result;
}

#endif
