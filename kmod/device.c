// SPDX-License-Identifier: GPL-2.0-only
/*
 * device.c - /dev/pem: init and exit of the module, and ioctls, which call the functions of other
 * files
 *
 * Each value from user space is copied once and checked by the function that uses it. A structure
 * may come from an older or newer user: see pem/kmod.h.
 */
#include "module.h"

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

static int pem_open(struct inode *inode, struct file *file)
{
	struct pem_kmod_session *session = pem_kmod_session__new();

	if (IS_ERR(session))
		return PTR_ERR(session);
	file->private_data = session;
	return nonseekable_open(inode, file);
}

static int pem_release(struct inode *inode, struct file *file)
{
	pem_kmod_session__free(file->private_data);
	return 0;
}

/* --- structures of user space: their first word is their size --- */

static int copy_in(void *to, size_t bytes, void __user *from)
{
	u32 user_bytes;
	int rc;

	if (get_user(user_bytes, (u32 __user *)from))
		return -EFAULT;
	if (user_bytes < sizeof(user_bytes) || user_bytes > PAGE_SIZE)
		return user_bytes > PAGE_SIZE ? -E2BIG : -EINVAL;
	rc = copy_struct_from_user(to, bytes, from, user_bytes);
	/* The size that was checked. User space may have changed it meanwhile. */
	*(u32 *)to = user_bytes;
	return rc;
}

static int copy_out(void __user *to, const void *from, size_t bytes)
{
	return copy_to_user(to, from, min_t(size_t, *(const u32 *)from, bytes)) ? -EFAULT : 0;
}

/* --- the ioctls, in the order of their numbers; all but WORK run under the session's lock --- */

static int do_info(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_info info;
	int rc = copy_in(&info, sizeof(info), arg);

	if (rc || info.reserved || info.reserved1)
		return rc ? rc : -EINVAL;
	info = (struct pem_kmod_info){
		.size = info.size,
		.version = PEM_KMOD_VERSION,
		.event_count = pem_kmod_probe_count,
		.cpu_count = nr_cpu_ids,
		.limit_bytes = pem_kmod_user__limit(),
		.used_bytes = pem_kmod_user__used(session->user),
		.statistics_lost = atomic64_read(&session->probe_data.statistics_lost),
		.targets_lost = pem_target__lost(session),
	};
	return copy_out(arg, &info, sizeof(info));
}

static int do_events(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_listed listed, __user *to;
	struct pem_kmod_list list;
	u32 i, written = 0;
	int rc = copy_in(&list, sizeof(list), arg);

	if (rc || list.reserved)
		return rc ? rc : -EINVAL;
	to = u64_to_user_ptr(list.entries);
	for (i = list.first; i < pem_kmod_probe_count && written < list.count; i++, written++) {
		i = array_index_nospec(i, pem_kmod_probe_count);
		memset(&listed, 0, sizeof(listed));
		listed.event_id = pem_kmod_probes[i].event_id;
		listed.available = pem_attach__has(i);
		if (pem_kmod_probes[i].tracepoint)
			strscpy(listed.tracepoint, pem_kmod_probes[i].tracepoint,
				sizeof(listed.tracepoint));
		if (copy_to_user(to + written, &listed, sizeof(listed)))
			return -EFAULT;
	}
	list.count = written;
	return copy_out(arg, &list, sizeof(list));
}

static int do_setup(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_setup setup;
	int rc = copy_in(&setup, sizeof(setup), arg);

	return rc ? rc : pem_kmod_session__setup(session, &setup);
}

static int do_event(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_event event;
	int rc = copy_in(&event, sizeof(event), arg);

	if (rc)
		return rc;
	return session->state == PEM_KMOD_SESSION_NEW ? -EBUSY
						      : pem_kmod_rule__set(session, &event);
}

static int do_target(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_target target;
	int rc = copy_in(&target, sizeof(target), arg);

	if (rc)
		return rc;
	return session->state == PEM_KMOD_SESSION_NEW ? -EBUSY
						      : pem_target__add(session, target.pid);
}

/*
 * The argument is not used. If ioctl() is called with two arguments, it passes whatever its third
 * register holds.
 */
static int do_start(struct pem_kmod_session *session, void __user *unused)
{
	return pem_kmod_session__start(session);
}

static int do_stop(struct pem_kmod_session *session, void __user *unused)
{
	return pem_kmod_session__stop(session);
}

static int do_take(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_chunks chunks;
	int rc = copy_in(&chunks, sizeof(chunks), arg);

	if (!rc)
		rc = session->state == PEM_KMOD_SESSION_NEW ? -EBUSY
							    : pem_kmod_pool__take(session, &chunks);
	if (rc)
		return rc;
	rc = copy_out(arg, &chunks, sizeof(chunks));
	if (rc)
		pem_kmod_pool__untake(session, chunks.cpu, chunks.count);
	return rc;
}

static int do_free(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_chunks chunks;
	int rc = copy_in(&chunks, sizeof(chunks), arg);

	if (rc)
		return rc;
	return session->state == PEM_KMOD_SESSION_NEW ? -EBUSY
						      : pem_kmod_pool__free(session, &chunks);
}

/* The ioctls of sampling.h need a session that is set up. It may run. */

static int do_counters(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_counters counters;
	int rc = copy_in(&counters, sizeof(counters), arg), error;

	if (rc || session->state == PEM_KMOD_SESSION_NEW)
		return rc ? rc : -EBUSY;
	rc = pem_counters__open(&session->probe_data, &counters);
	error = copy_out(arg, &counters, sizeof(counters));
	return rc ? rc : error;
}

static int do_accessed(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_accessed accessed;
	int rc = copy_in(&accessed, sizeof(accessed), arg);

	if (rc || session->state == PEM_KMOD_SESSION_NEW)
		return rc ? rc : -EBUSY;
	return pem_accessed__set(&session->sampling, &accessed);
}

static int do_supply(struct pem_kmod_session *session, void __user *arg)
{
	struct pem_kmod_supply supply;
	int rc = copy_in(&supply, sizeof(supply), arg);

	if (rc || session->state == PEM_KMOD_SESSION_NEW)
		return rc ? rc : -EBUSY;
	return pem_supply__set(&session->sampling, &supply,
			       session->state == PEM_KMOD_SESSION_RUNNING);
}

static int (*const ioctls[])(struct pem_kmod_session *session, void __user *arg) = {
	[_IOC_NR(PEM_KMOD_INFO)] = do_info,         [_IOC_NR(PEM_KMOD_EVENTS)] = do_events,
	[_IOC_NR(PEM_KMOD_SETUP)] = do_setup,       [_IOC_NR(PEM_KMOD_EVENT)] = do_event,
	[_IOC_NR(PEM_KMOD_TARGET)] = do_target,     [_IOC_NR(PEM_KMOD_START)] = do_start,
	[_IOC_NR(PEM_KMOD_STOP)] = do_stop,         [_IOC_NR(PEM_KMOD_TAKE)] = do_take,
	[_IOC_NR(PEM_KMOD_FREE)] = do_free,         [_IOC_NR(PEM_KMOD_COUNTERS)] = do_counters,
	[_IOC_NR(PEM_KMOD_ACCESSED)] = do_accessed, [_IOC_NR(PEM_KMOD_SUPPLY)] = do_supply,
};

/*
 * Dispatch by number only: size and direction come from the user's header, and the user's structure
 * holds its own size.
 */
static long pem_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct pem_kmod_session *session = file->private_data;
	unsigned int number = _IOC_NR(command);
	long rc;

	if (_IOC_TYPE(command) != _IOC_TYPE(PEM_KMOD_INFO))
		return -ENOTTY;
	/* Without the lock, because it takes as long as the session runs. */
	if (number == _IOC_NR(PEM_KMOD_WORK))
		return pem_tickers__work(&session->sampling.tickers);
	if (number >= ARRAY_SIZE(ioctls))
		return -ENOTTY;
	if (mutex_lock_interruptible(&session->lock))
		return -ERESTARTSYS;
	rc = ioctls[array_index_nospec(number, ARRAY_SIZE(ioctls))](session, (void __user *)arg);
	mutex_unlock(&session->lock);
	return rc;
}

static int pem_map(struct file *file, struct vm_area_struct *vma)
{
	return pem_kmod_pool__map(file->private_data, vma);
}

static __poll_t pem_poll(struct file *file, poll_table *table)
{
	struct pem_kmod_session *session = file->private_data;

	poll_wait(file, &session->wait, table);
	return pem_kmod_pool__poll(session);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = pem_open,
	.release = pem_release,
	.unlocked_ioctl = pem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = pem_map,
	.poll = pem_poll,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "pem",
	.fops = &operations,
	.mode = 0660,
};

static int __init pem_begin_module(void)
{
	int rc = pem_attach__init();

	if (rc)
		return rc;
	rc = pem_kmod_pool__init();
	if (rc)
		goto no_pools;
	rc = pem_counters__init();
	if (rc)
		goto no_counters;
	rc = misc_register(&device);
	if (!rc)
		return 0;
	pem_counters__exit();
no_counters:
	pem_kmod_pool__exit();
no_pools:
	pem_attach__exit();
	return rc;
}

/* No file is open here, because each open file holds the module. */
static void __exit pem_end_module(void)
{
	misc_deregister(&device);
	pem_counters__exit();
	pem_kmod_pool__exit();
	pem_attach__exit();
}

module_init(pem_begin_module);
module_exit(pem_end_module);

MODULE_DESCRIPTION(
	"Performance and Environment Monitoring: tracepoints to packets, behind /dev/pem");
MODULE_LICENSE("GPL");
