/* SPDX-License-Identifier: MIT */
/*
 * lease.c - the large pages that treated runs mean to use: two agents don't count on the same
 *
 * A lease is a row of the database from the start of a treated run to its end. Its resource names
 * this machine since it was booted; many have it together, and its holder's text says how much each
 * means to use:
 *
 *	page-size 4026531836:1234:56789 67108864
 *
 * The pid namespace, the process and its start, and bytes.
 *
 * What the processes of a run have already is missing from free memory, so that only the rest of a
 * lease counts. A lease of a process that has ended counts no more, and is removed by whoever finds
 * it. In another pid namespace nobody can tell: there it lasts a day at most.
 */
#include "program.h"

#include "apply/supply.h"
#include "processes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LASTS_NS (INT64_C(86400) * 1000000000)
/* No machine has more. */
#define BYTES_MAX (UINT64_C(1) << 52)
/* Processes of a run that are asked what they have, and how deep they are nested. */
#define PROCESSES_MAX 64u
#define DEPTH_MAX 8u

struct holder {
	uint64_t namespace, started, bytes;
	uint32_t pid;
};

static uint64_t own_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct pem_db_lease of_this_machine(void)
{
	struct pem_db_lease lease = {.size = sizeof(lease)};
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64] = "";

	if (file && !fgets(boot, sizeof(boot), file))
		*boot = '\0';
	if (file)
		fclose(file);
	boot[strcspn(boot, "\n")] = '\0';
	snprintf(lease.resource, sizeof(lease.resource), "large pages of boot %s", boot);
	return lease;
}

/* The database may hold anything. */
static bool read_holder(struct holder *holder, const char *text)
{
	int end = 0;

	*holder = (struct holder){0};
	return sscanf(text, PAGE_AGENT " %" SCNu64 ":%" SCNu32 ":%" SCNu64 " %" SCNu64 "%n",
		      &holder->namespace, &holder->pid, &holder->started, &holder->bytes,
		      &end) == 4 &&
	       !text[end] && holder->pid && holder->bytes < BYTES_MAX;
}

/* --- what a run has already --- */

static uint64_t resident(uint32_t pid)
{
	char path[40];
	FILE *file;
	uint64_t pages = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/statm", pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Memory of what descends from a process. */
struct below {
	pid_t root;
	uint32_t left; /* processes that are asked yet */
	uint64_t bytes;
};

static bool add_resident(int pid, void *arg)
{
	struct below *below = arg;

	if (pid == below->root)
		return true;
	below->bytes += resident((uint32_t)pid);
	return --below->left > 0;
}

/* --- others --- */

struct sum {
	struct pem_database *database;
	int64_t before, now_ns;
	uint64_t namespace, bytes;
	struct pem_error error;
};

static int add_lease(const void *row, void *arg)
{
	const struct pem_db_lease *lease = row;
	struct sum *sum = arg;
	struct holder holder;
	struct below below = {.left = PROCESSES_MAX};
	int rc;

	if (!read_holder(&holder, lease->holder))
		return 0;
	if (lease->until_ns <= sum->now_ns ||
	    (holder.namespace == sum->namespace && supply__started(holder.pid) != holder.started)) {
		rc = pem_database__remove(sum->database, PEM_DB_LEASE, lease->id, &sum->error);
		return rc < 0 ? rc : 0;
	}
	if ((sum->before && lease->id >= sum->before) ||
	    (holder.namespace == sum->namespace && holder.pid == (uint32_t)getpid()))
		return 0;
	below.root = (pid_t)holder.pid;
	if (holder.namespace == sum->namespace)
		pem_proc__walk(&below.root, 1, DEPTH_MAX, add_resident, &below);
	sum->bytes += holder.bytes > below.bytes ? holder.bytes - below.bytes : 0;
	return 0;
}

uint64_t page_lease__others(struct pem_agent *agent, int64_t before)
{
	struct pem_db_lease like = of_this_machine();
	struct sum sum = {.database = pem_agent__database(agent),
			  .before = before,
			  .now_ns = now_ns(),
			  .namespace = own_namespace()};

	if (sum.database &&
	    pem_database__each(sum.database, PEM_DB_LEASE, &like, add_lease, &sum, &sum.error) < 0)
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "which large pages other runs mean to use is not known: %s",
			       sum.error.text);
	return sum.bytes;
}

int64_t page_lease__take(struct pem_agent *agent, uint64_t bytes)
{
	struct pem_db_lease lease = of_this_machine();
	struct pem_database *database = pem_agent__database(agent);
	struct pem_error error;
	int64_t id;

	if (!database || !bytes)
		return 0;
	snprintf(lease.holder, sizeof(lease.holder),
		 PAGE_AGENT " %" PRIu64 ":%" PRIu32 ":%" PRIu64 " %" PRIu64, own_namespace(),
		 (uint32_t)getpid(), supply__started((uint32_t)getpid()), bytes);
	lease.until_ns = now_ns() + LASTS_NS;
	id = pem_database__put(database, PEM_DB_LEASE, &lease, &error);
	if (id < 0)
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "other runs are not told of the large pages of this one: %s",
			       error.text);
	return id > 0 ? id : 0;
}

void page_lease__end(struct pem_agent *agent, int64_t id)
{
	struct pem_database *database = pem_agent__database(agent);
	struct pem_error error;

	/* One that stays in the database is over when this process is. */
	if (database && id && pem_database__remove(database, PEM_DB_LEASE, id, &error) < 0)
		pem_agent__say(agent, PEM_LOG_WARNING, "a lease is not ended: %s", error.text);
}
