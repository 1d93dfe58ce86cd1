// SPDX-License-Identifier: MIT
/*
 * gaps.c - describes what could not be recorded and why, in few sentences: reasons that differ in
 * one word, a name, are combined
 */
#include "cli.h"

#include <ctype.h>
#include <string.h>

/* Find word k of a text. Returns its length, or 0 if there is none. */
static size_t word_at(const char *text, int k, const char **word)
{
	for (; k > 0 && *text != '\0'; k--) {
		text += strcspn(text, " ");
		text += *text == ' ';
	}
	*word = text;
	return strcspn(text, " ");
}

/* Index of the only word in which two texts differ. -1: none differs. -2: several differ. */
static int difference(const char *a, const char *b)
{
	int k, found = -1;

	for (k = 0;; k++) {
		size_t n = strcspn(a, " "), m = strcspn(b, " ");

		if (n != m || strncmp(a, b, n) != 0) {
			if (found >= 0)
				return -2;
			found = k;
		}
		a += n;
		b += m;
		if (*a == '\0' || *b == '\0')
			return *a == *b ? found : -2;
		a++;
		b++;
	}
}

struct groups {
	uint32_t leader[sizeof(((struct pem_trace_info *)0)->gaps) / sizeof(struct pem_trace_gap)];
	int word[sizeof(((struct pem_trace_info *)0)->gaps) / sizeof(struct pem_trace_gap)];
};

/*
 * For each gap find the first gap of its group. For that gap, also find the word in which its group
 * differs, or -1.
 */
static void group(const struct pem_trace_info *info, struct groups *g)
{
	uint32_t i, j;

	for (i = 0; i < info->gap_count; i++) {
		g->leader[i] = i;
		g->word[i] = -1;
		for (j = 0; j < i && g->leader[i] == i; j++) {
			int k = difference(info->gaps[j].reason, info->gaps[i].reason);

			if (g->leader[j] != j || k == -2 ||
			    strcmp(info->gaps[j].source, info->gaps[i].source) != 0 ||
			    (k >= 0 && g->word[j] >= 0 && k != g->word[j]))
				continue;
			g->leader[i] = j;
			if (k >= 0)
				g->word[j] = k;
		}
	}
}

bool cli_gap__sentence(const struct pem_trace_info *info, uint32_t i, char *text, size_t bytes)
{
	const char *reason = info->gaps[i].reason, *word;
	size_t n, bare, used;
	struct groups g;
	uint32_t j;

	group(info, &g);
	if (g.leader[i] != i)
		return false;
	snprintf(text, bytes, "%s", reason);
	if (g.word[i] < 0)
		return true;
	/* "no tracepoint a:b: it is" becomes "no tracepoint a:b, c:d: it is". */
	n = word_at(reason, g.word[i], &word);
	for (bare = n; bare > 0 && ispunct((unsigned char)word[bare - 1]); bare--)
		;
	used = (size_t)snprintf(text, bytes, "%.*s", (int)(word + bare - reason), reason);
	for (j = i + 1; j < info->gap_count && used < bytes; j++) {
		if (g.leader[j] != i || strcmp(info->gaps[j].reason, reason) == 0)
			continue;
		n = word_at(info->gaps[j].reason, g.word[i], &word);
		while (n > 0 && ispunct((unsigned char)word[n - 1]))
			n--;
		used += (size_t)snprintf(text + used, bytes - used, ", %.*s", (int)n, word);
	}
	word_at(reason, g.word[i], &word);
	if (used < bytes)
		snprintf(text + used, bytes - used, "%s", word + bare);
	return true;
}

const char *cli_gaps__rest(const struct pem_trace_info *info)
{
	return info->gap_count == sizeof(info->gaps) / sizeof(info->gaps[0])
		       ? "a trace names so many reasons at most: pem list tells of each event "
			 "whether it can be had here"
		       : NULL;
}
