/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fail.c - sentences of errors; part of the library and of its plugin */
#include "connection.h"

#include <pem/trace.h>

#include <stdarg.h>
#include <stdio.h>

int pem_db__fail(struct pem_error *error, int code, const char *format, ...)
{
	va_list args;

	if (!error)
		return code;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	pem_printable(error->text);
	return code;
}
