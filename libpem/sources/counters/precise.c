// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * precise.c - events by which the processor itself tells the data of a sample
 *
 * The kernel describes them in /sys/bus/event_source/devices
 * (Documentation/ABI/testing/sysfs-bus-event_source-devices-{events,format}): "mem-loads",
 * "mem-stores" and, where loads can only be sampled in a group, its leader "mem-loads-aux" (Intel's
 * PEBS); or a device of its own, ibs_op, that samples any instruction (AMD's IBS). Both write
 * ordinary records of samples. Arm's SPE does not, and is not read.
 *
 * IBS of one thread, with addresses, needs Linux 6.2. Before, the kernel refuses to open it.
 */
#include "data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TEXT_BYTES 256u

#if defined(__x86_64__)
#define STACK_POINTER_BIT 7 /* PERF_REG_X86_SP */
#elif defined(__aarch64__)
#define STACK_POINTER_BIT 31 /* PERF_REG_ARM64_SP */
#else
#define STACK_POINTER_BIT 63 /* none: the kernel refuses it */
#endif

/* Read a line of devices/device/name. Returns 0 or -errno. */
static int read_line(const char *devices, const char *device, const char *name,
		     char text[TEXT_BYTES])
{
	char path[512];
	FILE *file;
	int rc = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s/%s", devices, device, name) >= sizeof(path))
		return -ENAMETOOLONG;
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (!fgets(text, TEXT_BYTES, file))
		rc = -EIO;
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return rc;
}

static __u64 *field_of(struct perf_event_attr *attr, const char *format, size_t bytes)
{
	static const struct {
		const char *name;
		size_t offset;
	} fields[] = {{"config", offsetof(struct perf_event_attr, config)},
		      {"config1", offsetof(struct perf_event_attr, config1)},
		      {"config2", offsetof(struct perf_event_attr, config2)}};
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strlen(fields[i].name) == bytes && !memcmp(fields[i].name, format, bytes))
			return (__u64 *)(void *)((char *)attr + fields[i].offset);
	return NULL;
}

/*
 * Put a value into the bits that a format has for it, as "config:0-7,32-35": the lowest first.
 * Returns 0, or -EINVAL if it is no such format, or has no room.
 */
static int put_value(struct perf_event_attr *attr, const char *format, uint64_t value)
{
	const char *at = strchr(format, ':');
	__u64 *field = at ? field_of(attr, format, (size_t)(at - format)) : NULL;

	while (field && *at && value) {
		unsigned low, high, count;
		int read = 0;

		at++;
		if (sscanf(at, "%2u-%2u%n", &low, &high, &read) != 2 || !read) {
			if (sscanf(at, "%2u%n", &low, &read) != 1)
				return -EINVAL;
			high = low;
		}
		if (high > 63 || low > high)
			return -EINVAL;
		count = high - low + 1;
		*field |= (count < 64 ? value & ((1ull << count) - 1) : value) << low;
		value = count < 64 ? value >> count : 0;
		at += read;
		if (*at && *at != ',')
			return -EINVAL;
	}
	return field && !value ? 0 : -EINVAL;
}

/* Set a term that the device's formats have. Returns 0 or -errno. */
static int put_term(const char *devices, const char *device, struct perf_event_attr *attr,
		    const char *term, uint64_t value)
{
	char name[TEXT_BYTES], format[TEXT_BYTES];
	int rc;

	if ((size_t)snprintf(name, sizeof(name), "format/%s", term) >= sizeof(name))
		return -EINVAL;
	rc = read_line(devices, device, name, format);
	return rc ? rc : put_value(attr, format, value);
}

static int put_type(const char *devices, const char *device, struct perf_event_attr *attr)
{
	char text[TEXT_BYTES];
	int rc = read_line(devices, device, "type", text);

	memset(attr, 0, sizeof(*attr));
	if (rc)
		return rc;
	attr->type = (uint32_t)strtoul(text, NULL, 10);
	attr->size = sizeof(*attr);
	return 0;
}

/* Encode an event as the device names it: "event=0xcd,umask=0x1,ldlat=3". Returns 0 or -errno. */
static int encode(const char *devices, const char *device, const char *event,
		  struct perf_event_attr *out)
{
	char name[TEXT_BYTES], text[TEXT_BYTES], *rest = text, *term, *value;
	struct perf_event_attr attr;
	int rc;

	snprintf(name, sizeof(name), "events/%s", event);
	rc = read_line(devices, device, name, text);
	if (!rc)
		rc = put_type(devices, device, &attr);
	while (!rc && (term = strsep(&rest, ","))) {
		value = strchr(term, '=');
		if (value)
			*value++ = '\0';
		rc = put_term(devices, device, &attr, term, value ? strtoull(value, NULL, 0) : 1);
	}
	if (!rc)
		*out = attr;
	return rc;
}

void precise__prepare(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
			     PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = 1ull << STACK_POINTER_BIT;
	attr->mmap_data = attr->mmap;
}

int precise__open(const struct precise *precise, struct perf_event_attr *attr, int cgroup_fd,
		  pid_t pid, int cpu, int beside[PRECISE_BESIDE])
{
	struct perf_event_attr other;
	int group = -1, fd = -EINVAL;

	beside[PRECISE_STORES] = beside[PRECISE_LEADER] = -1;
	if (precise->leader.size) {
		other = precise->leader;
		other.inherit = attr->inherit;
		other.use_clockid = attr->use_clockid;
		other.clockid = attr->clockid;
		other.disabled = attr->disabled;
		other.enable_on_exec = attr->enable_on_exec;
		group = counter__open_on(cgroup_fd, &other, pid, cpu, -1);
		if (group < 0)
			return group;
		beside[PRECISE_LEADER] = group;
	}
	fd = counter__open_on(cgroup_fd, attr, pid, cpu, group);
	if (fd >= 0 && precise->stores.size) {
		other = *attr;
		other.type = precise->stores.type;
		other.config = precise->stores.config;
		other.config1 = precise->stores.config1;
		other.config2 = precise->stores.config2;
		other.precise_ip = precise->stores.precise_ip;
		other.mmap = other.mmap2 = other.mmap_data = other.build_id = 0;
		other.task = other.comm = other.comm_exec = 0;
		other.disabled = other.enable_on_exec = 0;
		beside[PRECISE_STORES] =
			counter__open_on(cgroup_fd, &other, pid, cpu, group < 0 ? fd : group);
	}
	/* Loads alone would be taken for all that there is. */
	if (fd >= 0 && precise->stores.size && beside[PRECISE_STORES] < 0) {
		close(fd);
		fd = beside[PRECISE_STORES];
		beside[PRECISE_STORES] = -1;
	}
	if (fd < 0 && group >= 0) {
		close(group);
		beside[PRECISE_LEADER] = -1;
	}
	return fd;
}

/* Can what was found be opened? Returns 0 or -errno. */
static int try(const struct precise *precise)
{
	struct perf_event_attr attr = precise->loads;
	int beside[PRECISE_BESIDE], fd, i;

	attr.disabled = 1;
	attr.freq = 1;
	attr.sample_freq = 100;
	precise__prepare(&attr);
	fd = precise__open(precise, &attr, -1, 0, -1, beside);
	if (fd < 0)
		return fd;
	close(fd);
	for (i = 0; i < PRECISE_BESIDE; i++)
		if (beside[i] >= 0)
			close(beside[i]);
	return 0;
}

/* As exact as the kernel allows (attr.precise_ip). */
static int try_precisions(struct precise *precise)
{
	unsigned precision;
	int rc = -ENOENT;

	for (precision = 3; precision > 0; precision--) {
		precise->loads.precise_ip = precise->stores.precise_ip = precision & 3u;
		rc = try(precise);
		if (!rc)
			break;
	}
	return rc;
}

/* Loads and stores as events of the processor's own counters. */
static int find_events(const char *devices, const char *device, struct precise *precise)
{
	int rc;

	memset(precise, 0, sizeof(*precise));
	rc = encode(devices, device, "mem-loads", &precise->loads);
	if (rc)
		return rc;
	precise->loads.exclude_kernel = precise->loads.exclude_hv = 1;
	if (encode(devices, device, "mem-loads-aux", &precise->leader) < 0)
		precise->leader.size = 0;
	if (encode(devices, device, "mem-stores", &precise->stores) < 0)
		precise->stores.size = 0;
	rc = try_precisions(precise);
	if (rc && precise->stores.size) {
		precise->stores.size = 0;
		rc = try_precisions(precise);
	}
	return rc;
}

/* A device that samples any instruction. From Linux 6.14 on it can leave out the kernel's. */
static int find_device(const char *devices, const char *device, struct precise *precise)
{
	int rc;

	memset(precise, 0, sizeof(*precise));
	rc = put_type(devices, device, &precise->loads);
	if (rc)
		return rc;
	if (put_term(devices, device, &precise->loads, "swfilt", 1) == 0)
		precise->loads.exclude_kernel = 1;
	else
		precise->samples_kernel = 1;
	return try(precise);
}

int precise__find(const char *devices, struct precise *precise)
{
	static const char *const processors[] = {"cpu", "cpu_core"};
	struct precise found;
	size_t i;
	int rc;

	for (i = 0; i < sizeof(processors) / sizeof(processors[0]); i++) {
		rc = find_events(devices, processors[i], &found);
		if (!rc)
			goto out;
		if (rc != -ENOENT)
			return rc;
	}
	rc = find_device(devices, "ibs_op", &found);
out:
	if (!rc)
		*precise = found;
	return rc;
}
