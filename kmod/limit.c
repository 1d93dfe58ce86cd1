// SPDX-License-Identifier: GPL-2.0-only
/*
 * limit.c - limits the memory and the number of all sessions of one user
 *
 * A user has one entry in a list, from the first open file to the last. One lock is enough: only
 * opening a file and making a pool take it.
 */
#include "module.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

struct pem_kmod_user {
	struct list_head list;
	kuid_t uid;
	unsigned int files;
	u64 used_bytes;
};

#define DEFAULT_SHARE 8 /* 1 / 8 of the machine's memory */
/* The memory of a session before SETUP is not counted, so the number of files is limited. */
#define FILES_MAX 64

static int limit_mb = -1;
module_param(limit_mb, int, 0644);
MODULE_PARM_DESC(limit_mb,
		 "MiB of memory for all sessions of a user without CAP_SYS_RESOURCE; 0: no limit; "
		 "-1: an eighth of the machine's memory (default)");

static LIST_HEAD(users);
static DEFINE_SPINLOCK(users_lock);

static struct pem_kmod_user *find_locked(kuid_t uid)
{
	struct pem_kmod_user *user;

	list_for_each_entry(user, &users, list) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

/*
 * The user whose limits apply to the current process. In a user namespace an ordinary user has
 * thousands of user ids (/etc/subuid), so they all count as the namespace's owner. In a namespace
 * that root made, each id is a user of its own.
 */
static kuid_t accountable_user(void)
{
	const struct user_namespace *ns;
	kuid_t owner = GLOBAL_ROOT_UID;

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		owner = ns->owner;
	return uid_eq(owner, GLOBAL_ROOT_UID) ? current_uid() : owner;
}

/* Get the user that opens the file. ERR_PTR: no memory, or the user has too many files. */
struct pem_kmod_user *pem_kmod_user__get(void)
{
	struct pem_kmod_user *made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT), *user;
	bool is_exempt = capable(CAP_SYS_RESOURCE);
	kuid_t uid = accountable_user();

	if (!made)
		return ERR_PTR(-ENOMEM);
	spin_lock(&users_lock);
	user = find_locked(uid);
	if (!user) {
		user = made;
		made = NULL;
		user->uid = uid;
		list_add(&user->list, &users);
	}
	if (user->files < FILES_MAX || is_exempt)
		user->files++;
	else
		user = ERR_PTR(-EMFILE);
	spin_unlock(&users_lock);
	kfree(made);
	return user;
}

void pem_kmod_user__put(struct pem_kmod_user *user)
{
	spin_lock(&users_lock);
	if (--user->files)
		user = NULL;
	else
		list_del(&user->list);
	spin_unlock(&users_lock);
	kfree(user);
}

u64 pem_kmod_user__limit(void)
{
	int mib = READ_ONCE(limit_mb);

	return mib < 0 ? ((u64)totalram_pages() << PAGE_SHIFT) / DEFAULT_SHARE : (u64)mib << 20;
}

int pem_kmod_user__charge(struct pem_kmod_user *user, u64 bytes, bool is_exempt)
{
	u64 limit = is_exempt ? 0 : pem_kmod_user__limit();
	int rc = 0;

	spin_lock(&users_lock);
	if (limit && (user->used_bytes > limit || bytes > limit - user->used_bytes))
		rc = -ENOMEM;
	else
		user->used_bytes += bytes;
	spin_unlock(&users_lock);
	return rc;
}

void pem_kmod_user__uncharge(struct pem_kmod_user *user, u64 bytes)
{
	spin_lock(&users_lock);
	user->used_bytes -= bytes;
	spin_unlock(&users_lock);
}

u64 pem_kmod_user__used(struct pem_kmod_user *user)
{
	u64 used;

	spin_lock(&users_lock);
	used = user->used_bytes;
	spin_unlock(&users_lock);
	return used;
}
