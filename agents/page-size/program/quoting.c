/* SPDX-License-Identifier: MIT */
/* quoting.c - names of folders that LD_PRELOAD can't hold */
#include "program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What the loader takes for the end of a path. */
#define SEPARATORS " :"

static int refuse(struct pem_error *error, int code, const char *folder, const char *why)
{
	snprintf(
		error->text, sizeof(error->text),
		"pem lies in %.300s, and nothing can be preloaded from a folder with a space or a "
		"colon in its name: %.100s; install pem elsewhere, or name a folder without one in "
		"PEM_RUNTIME_DIR",
		folder, why);
	return code;
}

/* Does the link lead there? */
static bool leads_to(const char *link, const char *folder)
{
	char target[PATH_MAX];
	ssize_t length = readlink(link, target, sizeof(target));

	return length == (ssize_t)strlen(folder) && !memcmp(target, folder, (size_t)length);
}

int page_quote_folder(char *folder, size_t bytes, struct pem_error *error)
{
	char runtime[PATH_MAX - 32], link[PATH_MAX];
	uint32_t hash = 2166136261u;
	const char *c;
	int rc;

	if (!strpbrk(folder, SEPARATORS))
		return 0;
	rc = pem_runtime_dir(runtime, sizeof(runtime));
	if (rc)
		return refuse(error, rc, folder, "there is no runtime directory for a link");
	if (strpbrk(runtime, SEPARATORS))
		return refuse(error, -EOPNOTSUPP, folder, "so has the runtime directory");
	for (c = folder; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	snprintf(link, sizeof(link), "%s/page-size-%08x", runtime, hash);
	if (symlink(folder, link) && errno != EEXIST)
		return refuse(error, -errno, folder, "a link can't be made");
	if (!leads_to(link, folder))
		return refuse(error, -EEXIST, folder, "the link's name is another's");
	if (strlen(link) >= bytes)
		return refuse(error, -ENAMETOOLONG, folder, "the link's name is too long");
	strcpy(folder, link);
	return 0;
}
