// SPDX-License-Identifier: MIT
/* metric_sum.c - see metric_sum.h */
#include "metric_sum.h"

#include <errno.h>
#include <string.h>

static const char *skip_spaces(const char *text)
{
	return text + strspn(text, " ");
}

int pem_metric_sum__next(const char **text, int is_first, struct pem_metric_sum_term *term)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_:.";
	const char *at = skip_spaces(*text), *end;
	int32_t factor = 0, sign = 1;

	if (!*at && !is_first)
		return 0;
	if (!is_first) {
		if (*at != '+' && *at != '-')
			return -EINVAL;
		sign = *at == '-' ? -1 : 1;
		at = skip_spaces(at + 1);
	}
	for (end = at; *end >= '0' && *end <= '9' && factor <= PEM_METRIC_FACTOR_MAX; end++)
		factor = factor * 10 + (*end - '0');
	end = skip_spaces(end);
	if (*end == '*' && at != end) {
		if (factor < 1 || factor > PEM_METRIC_FACTOR_MAX)
			return -EINVAL;
		at = skip_spaces(end + 1);
	} else {
		factor = 1;
	}
	term->factor = sign * factor;
	term->name = at;
	term->bytes = strspn(at, letters);
	if (!term->bytes)
		return -EINVAL;
	*text = at + term->bytes;
	return 1;
}
