// SPDX-License-Identifier: MIT
/*
 * helper_messages.c - fuzz target: what a session takes from its confined helpers, of which one may
 * be an attacker's
 *
 * The input is steps of four bytes: what (a message of a keeper's or a finder's, of which kind; or
 * something that the session does), which name, which descriptors come along, and one more for
 * numbers. Messages wait in the socket until the session hears them. After each input the session
 * lets all go, and has as many descriptors open as before.
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/confined.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "dirs/finders.c"

#include "tests/unit/descriptors.h"

#include <pem/clock.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define CHUNK 4096u
#define CHUNKS 8u
#define FILES 64u
#define ROUNDS 500u /* of one session */

static struct pem_session *session;
static char folder[64];
static int keeper = -1, finder = -1; /* the helpers' ends */
static unsigned rounds;

static void check(int condition)
{
	if (!condition)
		abort();
}

static void begin(void)
{
	const struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = CHUNK, .chunk_count = CHUNKS};
	const struct pem_context any = {0};
	const char *const pattern = "APP::Libc::*";
	struct pem_statistics *statistics;
	struct pem_error error = {""};
	struct pem_event_set *set;

	session = pem_session__open(&options, &error);
	check(session != NULL);
	set = pem_event_set__new(session, &pattern, 1, &error);
	check(set != NULL);
	statistics = pem_session__register_statistics(session, set, NULL, NULL, &error);
	check(statistics && !pem_statistics__enable(statistics));
	pem_event_set__free(set);
	check(pem_session__context(session, &any, 0, PEM_CONTEXT_TARGET) > 0);
	session->processes->target_count = 1;
	pem_session__add_session_dir(session);
}

static void clean(void)
{
	char command[96];

	if (session)
		pem_session__close(session);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	check(!system(command));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(folder, sizeof(folder), "%s/pem-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	check(mkdtemp(folder) != NULL);
	setenv("PEM_RUNTIME_DIR", folder, 1);
	atexit(clean);
	return 0;
}

/* --- helpers --- */

/* A helper that is this process, and nobody's child: its end is not waited for. */
static struct pem_confined *make_helper(int *end)
{
	struct pem_confined *helper = calloc(1, sizeof(*helper));
	int ends[2];

	check(helper &&
	      !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
	helper->socket = ends[0];
	helper->pid = getpid();
	*end = ends[1];
	return helper;
}

static void make_helpers(void)
{
	struct pem_dir *dir = calloc(1, sizeof(*dir));

	pem_session__add_session_dir(session);
	check(dir && session->dirs->first);
	dir->number = ++session->dirs->numbers;
	dir->owner = geteuid();
	dir->runtime_fd = dir->directory_fd = -1;
	pem_copy_text(dir->folder, sizeof(dir->folder), strrchr(session->directory, '/') + 1);
	dir->keeper = make_helper(&keeper);
	session->dirs->first->next = dir;
	session->dirs->finders = calloc(1, sizeof(*session->dirs->finders));
	check(session->dirs->finders != NULL);
	session->dirs->finders->setup.uid = geteuid();
	session->dirs->finders->helper = make_helper(&finder);
}

/* --- what helpers send --- */

static int make_file(const void *data, size_t bytes, uint64_t size)
{
	static unsigned number;
	char path[96];
	int fd;

	/* A file without a name is refused. Names come round. */
	snprintf(path, sizeof(path), "%s/file-%u", folder, number++ % FILES);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	check(fd >= 0 && pwrite(fd, data, bytes, 0) == (ssize_t)bytes &&
	      !ftruncate(fd, (off_t)size));
	return fd;
}

/* table: what each entry of it says. */
static int make_control(uint64_t table)
{
	struct pem_control_file control = {.magic = PEM_CONTROL_MAGIC,
					   .abi_version = PEM_ABI_VERSION,
					   .pid = 1,
					   .provider_count = 1};
	unsigned i;

	control.provider[0].offset = PEM_PAGE_ALIGN;
	control.provider[0].bytes = PEM_PAGE_ALIGN * 2;
	for (i = 0; i < PEM_SESSIONS_MAX; i++)
		control.session[i].word = table;
	return make_file(&control, sizeof(control), 4096u + 5 * PEM_PAGE_ALIGN);
}

static int make_pool(uint8_t more)
{
	static const char *const controls[] = {"control-1-0", "control-1-1", "../config", ""};
	struct pem_pool_header header = {.abi_version = PEM_ABI_VERSION,
					 .chunk_bytes = more & 1 ? 2 * CHUNK : CHUNK,
					 .chunk_count = CHUNKS,
					 .lane_count = 8,
					 .event_capacity = 512,
					 .pid = 0x3fffffff,
					 .start_clock = 1u + (more >> 4)};

	pem_copy_text(header.control_name, sizeof(header.control_name), controls[more >> 1 & 3]);
	pem_pool__layout(&header);
	header.magic = PEM_POOL_MAGIC;
	return make_file(&header, sizeof(header), header.total_bytes);
}

static int make_model(uint8_t more)
{
	static const char *const texts[] = {"pem-model\t2\n", "", "pem-model\t2\nevent\t",
					    "nothing\n"};

	return make_file(texts[more & 3], strlen(texts[more & 3]),
			 more & 4 ? 1ull << 40 : strlen(texts[more & 3]));
}

static int make_descriptor(uint8_t kind, uint8_t more)
{
	char path[96];
	int fds[2];

	switch (kind % 16) {
	case 0:
		return -1;
	case 1:
		return make_control(0);
	case 2: /* full: the keeper is asked who lives */
		return make_control(PEM_ENTRY_WORD(PEM_ENTRY_OFFERED, 1, PEM_CONSUMER(1, 1)));
	case 3:
		return make_control((uint64_t)more << 56 | more);
	case 4:
		return make_pool(more);
	case 5:
		return make_model(more);
	case 6: /* of which nothing is there */
		return make_file("CMEP", 4, 1ull << (more % 42));
	case 7:
		return make_file("", 0, 0);
	case 8:
		return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 9:
		return open(folder, O_PATH | O_CLOEXEC);
	case 10: /* a runtime folder that is not known */
		snprintf(path, sizeof(path), "%s/other-%u", folder, more % 4);
		mkdir(path, more & 64 ? 0777 : 0700);
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 11:
		check(!pipe2(fds, O_CLOEXEC | O_NONBLOCK));
		close(fds[more & 1]);
		return fds[!(more & 1)];
	case 12:
		return dup(more & 1 ? keeper : finder);
	case 13: /* the session's page, as a keeper makes it */
		return make_file("", 0, sizeof(struct pem_session_page) - (more & 1));
	case 14:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	default:
		return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	}
}

static void tell(int to, const uint8_t *step)
{
	static const char *const names[] = {"control-1-0",
					    "control-1-1",
					    "pool-1-1",
					    "pool-1-2",
					    "pool-4294967295-0",
					    "model-1cba7ae3",
					    "model-00000000",
					    "model-",
					    "config",
					    "../config",
					    "control-1-0/..",
					    "",
					    "."};
	struct pem_confined_reply reply = {.kind = step[0] & 15,
					   .number = step[3] & 15,
					   .value = (int8_t)step[3],
					   .inode = step[3]};
	int fds[3];
	unsigned count = 0, i;

	if (step[1] % 16 < PEM_ARRAY_SIZE(names))
		strcpy(reply.name, names[step[1] % 16]);
	else /* without an end */
		memset(reply.name, step[3], sizeof(reply.name));
	fds[0] = make_descriptor(step[2], step[3]);
	count += fds[0] >= 0;
	/* Two and three of them; and a message that is too short. */
	for (i = step[1] >> 4; count && i > 13; i--)
		fds[count++] = make_descriptor(1, 0);
	/* A full socket is the helper's affair. */
	send_descriptors(to, &reply, step[1] >> 4 == 12 ? step[3] % sizeof(reply) : sizeof(reply),
			 fds, count, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (i = 0; i < count; i++) {
		/* Its owner cuts off what the session may have mapped. */
		if (step[2] & 0x80 && ftruncate(fds[i], 0))
			errno = 0;
		close(fds[i]);
	}
}

/* --- what the session does meanwhile --- */

static void act(uint8_t what)
{
	struct pem_statistic_owner owners[4] = {{.size = sizeof(owners[0])}};
	struct pem_producer *p;

	switch (what % 8) {
	case 0:
		pem_session__scan_dirs(session);
		break;
	case 1:
		pem_session__scan_members(session);
		break;
	case 2:
		pem_session__release_gone(session);
		break;
	case 3:
		pem_session__publish(session);
		break;
	case 4:
		for (p = session->processes->producers; p; p = p->next)
			pem_session__drain_producer(session, p, false);
		break;
	case 5:
		pem_session__processes(session, owners, PEM_ARRAY_SIZE(owners));
		break;
	case 6:
		pem_session__mirror(session);
		pem_session__gather_losses(session);
		break;
	default:
		pem_session__leave_members(session);
		break;
	}
}

static void let_go(void)
{
	struct pem_producer *p;

	for (p = session->processes->producers; p; p = p->next)
		p->dead = true;
	pem_session__release_gone(session);
	pem_session__leave_members(session);
	pem_session__close_dirs(session);
	close(keeper);
	close(finder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	unsigned before;

	if (!session)
		begin();
	pem_session__close_dirs(session);
	before = count_descriptors();
	make_helpers();
	for (; bytes >= 4; data += 4, bytes -= 4) {
		if (data[0] & 0x40)
			act(data[1]);
		else
			tell(data[0] & 0x80 ? finder : keeper, data);
	}
	/* No answer comes to what is asked from now on. */
	shutdown(keeper, SHUT_WR);
	shutdown(finder, SHUT_WR);
	act(0);
	let_go();
	check(count_descriptors() == before);
	if (++rounds % ROUNDS == 0) {
		pem_session__close(session);
		session = NULL;
	}
	return 0;
}
