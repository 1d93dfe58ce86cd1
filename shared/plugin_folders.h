/* SPDX-License-Identifier: MIT */
/*
 * plugin_folders.h - finds the plugins of pem in folders that nobody else can put files into
 *
 * A plugin runs inside the program that loads it. So its folder and its file must belong to root,
 * to the user, or to the owner of libpem's folder, whose code runs already; and nobody else may
 * write to them: neither everybody nor a group, except the user's own and root's.
 *
 * What a plugin has inside is not checked here.
 */
#ifndef PEM_SHARED_PLUGIN_FOLDERS_H
#define PEM_SHARED_PLUGIN_FOLDERS_H

struct pem_plugin_search {
	const char *prefix; /* files are PREFIX*.so */
	const char *library_folder; /* libpem's */
	/*
	 * Called with a plugin's path and its name, the part between prefix and ".so". Returns 0 to
	 * continue. If several files have one name, only the first one is visited.
	 */
	int (*visit)(const char *path, const char *name, void *arg);
	/* Called with why a folder or a file was left out. NULL: nothing is said. */
	void (*refuse)(const char *sentence, void *arg);
	void *arg;
};

/*
 * Visit the plugins of the folders of PEM_PLUGIN_PATH, which has colons between them. An empty
 * name in it, as in "/mine:", stands for the folder "pem" in library_folder. Without this
 * variable visit those of the folder "pem" in library_folder. A program that has more rights than
 * its user (AT_SECURE) ignores the variable. In each folder the order is that of the names. A
 * folder that does not exist has no plugins. Returns what visit returned, 0, or -ENOMEM. Reads
 * folders, so it may block. Allocates.
 */
int pem_plugins__visit(const struct pem_plugin_search *search);

#endif
