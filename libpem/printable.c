/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * printable.c - making texts of programs and traces fit to be shown to a person
 *
 * Not here: what is not fit (shared/text.h).
 */
#include "text.h"

#include <pem/trace.h>

char *pem_printable(char *text)
{
	return text ? pem_make_printable(text) : NULL;
}
