// SPDX-License-Identifier: LGPL-2.1-or-later
/* readable.c - whether memory that a program passes may be read */
#include "libc/readable.h"

#include "libc/libc.h"
#include "producer/rights.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES ((uintptr_t)4096) /* the smallest page size */
#define NO_PAGE ((uintptr_t)1)

/*
 * Return whether the eight bytes at this address may be read. The first argument of the call is
 * invalid. The kernel reads the bytes before it tests that argument, unless they are at address 0.
 */
static bool ask(uintptr_t at)
{
	uintptr_t word = at & ~(uintptr_t)7;

	return word &&
	       (!pem_libc_internal_call(SYS_rt_sigprocmask, -1, word, NULL, sizeof(uint64_t)) ||
		errno != EFAULT);
}

/*
 * Return whether the byte at an address may be read. It asks once for each page. *page: the last
 * page that may be read; NO_PAGE at first.
 */
static bool is_readable(uintptr_t at, uintptr_t *page)
{
	uintptr_t its = at & ~(PAGE_BYTES - 1);

	if (its == *page)
		return true;
	if (!ask(at))
		return false;
	*page = its;
	return true;
}

static bool is_text(const char *text, uintptr_t *page)
{
	for (; is_readable((uintptr_t)text, page); text++) {
		if (!*text)
			return true;
	}
	return false;
}

static bool is_list(char *const texts[])
{
	uintptr_t page = NO_PAGE, page_of_texts = NO_PAGE;

	for (; texts; texts++) {
		if (!is_readable((uintptr_t)texts, &page))
			return false;
		if (!*texts)
			break;
		if (!is_text(*texts, &page_of_texts))
			return false;
	}
	return true;
}

bool pem_libc_readable__text(const char *text)
{
	uintptr_t page = NO_PAGE;
	int saved_errno = errno;
	bool result = text && (pem_rights__restricted() || is_text(text, &page));

	errno = saved_errno;
	return result;
}

bool pem_libc_readable__texts(char *const texts[])
{
	int saved_errno = errno;
	bool result = pem_rights__restricted() || is_list(texts);

	errno = saved_errno;
	return result;
}

bool pem_libc_readable__memory(const void *from, size_t bytes)
{
	uintptr_t at = (uintptr_t)from, end = at + bytes, page = NO_PAGE;
	int saved_errno = errno;
	bool result = end >= at;

	if (pem_rights__restricted())
		return true;
	for (; result && at < end; at = (at & ~(PAGE_BYTES - 1)) + PAGE_BYTES)
		result = is_readable(at, &page);
	errno = saved_errno;
	return result;
}

const char *pem_libc_readable__copy(char to[PEM_LIBC_TEXT_BYTES], const char *text)
{
	uintptr_t page = NO_PAGE;
	int saved_errno = errno;
	bool asks = !pem_rights__restricted();
	size_t i;

	for (i = 0; text && i < PEM_LIBC_TEXT_BYTES - 1; i++) {
		if (asks && !is_readable((uintptr_t)text + i, &page))
			text = NULL;
		else
			to[i] = text[i];
		if (text && !to[i])
			break;
	}
	to[i] = '\0';
	errno = saved_errno;
	return text ? to : NULL;
}

uint64_t pem_libc_readable__parts(const struct iovec *parts, size_t count)
{
	uint64_t bytes = 0;
	size_t i;

	if (count > IOV_MAX || !pem_libc_readable__memory(parts, count * sizeof(*parts)))
		return 0;
	for (i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes;
}
