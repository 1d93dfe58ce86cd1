/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * device.c - /dev/pem: can this user use it, which events does it have, its ioctls (contract:
 * module.h)
 */
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LISTED_MAX 65536u
/* How long a listing is used again. A session asks for hundreds of events at once. */
#define LIST_NS 200000000u

int pem_module__fail(struct pem_error *error, int code, const char *format, ...)
{
	va_list args;

	if (error) {
		va_start(args, format);
		vsnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
	}
	return code;
}

/* Write why the device can't be opened, and what the user can do. */
static int say_why(int code, struct pem_error *error)
{
	if (code == -EACCES || code == -EPERM)
		return pem_module__fail(error, code,
					"no permission for " PEM_KMOD_DEVICE
					": join the group tracing ('usermod "
					"-aG tracing USER', then log in anew), or run as root");
	if (code != -ENOENT && code != -ENXIO && code != -ENODEV)
		return pem_module__fail(error, code, PEM_KMOD_DEVICE " can't be opened: %s",
					strerror(-code));
	if (access("/proc/modules", F_OK))
		return pem_module__fail(error, -ENOENT,
					"this kernel has no module support (CONFIG_MODULES)");
	if (!access("/sys/module/pem", F_OK))
		return pem_module__fail(
			error, -ENOENT,
			"the module is loaded, and " PEM_KMOD_DEVICE
			" is missing: mount devtmpfs on /dev, or have udev make it");
	return pem_module__fail(error, -ENOENT,
				"the module is not loaded: 'modprobe pem', after 'make kmod' and "
				"'make kmod-install'");
}

int pem_module__open(struct pem_kmod_info *info, struct pem_error *error)
{
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC), code;

	if (fd < 0)
		return say_why(-errno, error);
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	if (ioctl(fd, PEM_KMOD_INFO, info)) {
		code = -errno;
		close(fd);
		return pem_module__fail(error, code,
					PEM_KMOD_DEVICE " does not answer as pem's module does: %s",
					strerror(-code));
	}
	if (info->version == PEM_KMOD_VERSION)
		return fd;
	close(fd);
	return pem_module__fail(error, -EPROTO,
				"the module that is loaded is of another version (%u, not %u): "
				"load the one of this pem",
				info->version, PEM_KMOD_VERSION);
}

int pem_module__usable(struct pem_error *reason)
{
	struct pem_kmod_info info;
	int fd = pem_module__open(&info, reason);

	if (fd < 0)
		return 0;
	close(fd);
	return 1;
}

/* --- events --- */

/* The last listing of the device, for all sessions of the process. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t until_ns;
	int error; /* 0, or the -errno why there is no list */
	struct pem_error reason;
	struct pem_kmod_listed *events; /* sorted by id */
	uint32_t count;
} list;

__attribute__((destructor)) static void forget_list(void)
{
	free(list.events);
	list.events = NULL;
	list.count = 0;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = ((const struct pem_kmod_listed *)a)->event_id;
	uint32_t y = ((const struct pem_kmod_listed *)b)->event_id;

	return x < y ? -1 : x > y;
}

/* Read all events of the device, which says how many it has. */
static int read_events(int fd, uint32_t event_count, struct pem_error *error)
{
	struct pem_kmod_list request = {.size = sizeof(request)};
	uint32_t count = 0;

	if (event_count > LISTED_MAX)
		return pem_module__fail(error, -EPROTO, "the module claims to have %u events",
					event_count);
	list.events = calloc(event_count + 1u, sizeof(*list.events));
	if (!list.events)
		return pem_module__fail(error, -ENOMEM, "out of memory");
	while (count < event_count) {
		request.first = count;
		request.count = event_count - count;
		request.entries = (uintptr_t)(list.events + count);
		if (ioctl(fd, PEM_KMOD_EVENTS, &request))
			return pem_module__fail(error, -errno,
						"the module does not list its events: %s",
						strerror(errno));
		if (!request.count || request.count > event_count - count)
			break;
		count += request.count;
	}
	qsort(list.events, count, sizeof(*list.events), by_id);
	list.count = count;
	return 0;
}

static void refresh_list(void)
{
	struct pem_kmod_info info;
	struct timespec now;
	uint64_t now_ns;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (now_ns < list.until_ns)
		return;
	forget_list();
	fd = pem_module__open(&info, &list.reason);
	list.error = fd < 0 ? fd : read_events(fd, info.event_count, &list.reason);
	if (fd >= 0)
		close(fd);
	list.until_ns = now_ns + LIST_NS;
}

int pem_module__has(uint32_t event_id, struct pem_error *reason)
{
	const struct pem_kmod_listed key = {.event_id = event_id}, *found;
	int result;

	pthread_mutex_lock(&list_lock);
	refresh_list();
	if (list.error) {
		result = pem_module__fail(reason, list.error == -ENOENT ? -ENOENT : 0, "%s",
					  list.reason.text);
	} else {
		found = list.count ? bsearch(&key, list.events, list.count, sizeof(key), by_id)
				   : NULL;
		result = found && found->available == 1 ? 1 : -ENOENT;
		if (result != 1)
			pem_module__fail(reason, 0,
					 found ? "the module has it, and this kernel, or the "
						 "module's build for it, lacks what it needs"
					       : "the module that is loaded was built without it");
	}
	pthread_mutex_unlock(&list_lock);
	return result;
}

/* --- chunks --- */

int pem_module__take(const struct pem_source *source, uint32_t cpu, uint32_t *chunks,
		     uint32_t count)
{
	struct pem_kmod_chunks request = {
		.size = sizeof(request), .cpu = cpu, .count = count, .chunks = (uintptr_t)chunks};

	if (ioctl(source->fd, PEM_KMOD_TAKE, &request))
		return -errno;
	return request.count <= count ? (int)request.count : -EPROTO;
}

int pem_module__free(const struct pem_source *source, uint32_t cpu, uint32_t chunk)
{
	struct pem_kmod_chunks request = {
		.size = sizeof(request), .cpu = cpu, .count = 1, .chunks = (uintptr_t)&chunk};

	return ioctl(source->fd, PEM_KMOD_FREE, &request) ? -errno : 0;
}
