// SPDX-License-Identifier: MIT
/*
 * public_folder.c - fuzz target: what root's session takes from its public folder
 *
 * The input is steps of four bytes: what, which name, an owner and a kind, a number. Hostile users
 * make and harm files; honest programs count in theirs; the session scans. One hostile step may
 * come while a file is mapped. Then honest counts were taken once, and nothing outside has changed.
 */
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "chunks/chunks.h"

/* Something happens while a file is mapped. */
static void gather_meanwhile(struct pem_session *s, struct pem_session_page *head);
#define pem_session__gather_head gather_meanwhile
#include "dirs/public.c"
#undef pem_session__gather_head
#include "producer/producer.h"
#include "tests/unit/descriptors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define CHUNK 4096u
#define CHUNKS 8u
#define ROUNDS 500u /* of one session */
#define HONEST 3u
#define LOCKS 8u
#define STEPS_MAX 64u
#define FIRST_UID 65000u

static struct pem_session *session;
static char runtime[64], outside[96]; /* outside: a file that links lead to */
static struct stat outside_was;
static struct pem_dir *folder;
static struct pem_session_page *honest[HONEST];
static int locks[LOCKS];
static uint64_t counted; /* by honest programs */
static uint8_t pending[4];
static bool is_pending, is_crowded;
static unsigned rounds, crowded_scans;

#define check(sure) must((sure) != 0, #sure)

static void must(bool sure, const char *what)
{
	if (sure)
		return;
	fprintf(stderr, "not so: %s; %s\n", what, strerror(errno));
	abort();
}

/* --- the session --- */

static void begin(void)
{
	const struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = CHUNK, .chunk_count = CHUNKS};
	const char *const pattern = "APP::Libc::*";
	struct pem_statistics *statistics;
	struct pem_event_set *set;

	session = pem_session__open(&options, NULL);
	check(session != NULL);
	set = pem_event_set__new(session, &pattern, 1, NULL);
	check(set != NULL);
	statistics = pem_session__register_statistics(session, set, NULL, NULL, NULL);
	check(statistics && !pem_statistics__enable(statistics));
	pem_event_set__free(set);
}

static void clean(void)
{
	char command[96];

	if (session)
		pem_session__close(session);
	snprintf(command, sizeof(command), "rm -rf %s", runtime);
	check(!system(command));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd;

	(void)argc;
	(void)argv;
	umask(0);
	snprintf(runtime, sizeof(runtime), "%s/pem-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	check(mkdtemp(runtime) != NULL);
	setenv("PEM_RUNTIME_DIR", runtime, 1);
	snprintf(outside, sizeof(outside), "%s/outside", runtime);
	fd = open(outside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	check(fd >= 0 && write(fd, "PEMC", 4) == 4 && !ftruncate(fd, PEM_SESSION_HEAD_BYTES) &&
	      !fstat(fd, &outside_was));
	close(fd);
	memset(locks, -1, sizeof(locks));
	atexit(clean);
	return 0;
}

/* As pem_session__make_public, for any user. */
static void make_public(void)
{
	int fd = make_folder(bases[access(bases[0], W_OK) != 0], session->dirs->public_directory,
			     sizeof(session->dirs->public_directory));

	check(fd >= 0 && write_names(session, fd));
	folder = add_folder(session, fd);
	check(folder && !fill_folder(session, folder) && !fchmod(fd, 01733));
}

/* --- hostile users --- */

static const char *const names[] = {
	"counts-1-1",
	"counts-1-2",
	"counts-",
	"counts-4294967296-1-1",
	"counts-\xff\n\x1b[2J",
	"pool-1-1",
	"pool-1-2",
	"pool-1-3",
	"pool-99999999999-1",
	"pool-1-1x",
	"model-00000001-65000",
	"model-00000001-1-1",
	"refused-1-1-28",
	"refused-1-2-28",
	"refused-1-1-4095",
	"refused-1-1-4096",
	"refused-1-1-0",
	"refused--1-1-5",
	"refused- 1-+1-5",
	"refused-1-1",
	"refused-1-1-",
	"refused-1-1-5x",
	"refused-99999999999-1-1",
	"refused-1-1-99999999999999999999",
	"refused-4294967295-4294967295-00001",
	".hidden",
	"config.new",
	"a-folder",
};

static const char *name_of(uint8_t number)
{
	static char text[256];

	number %= PEM_ARRAY_SIZE(names) + 2;
	if (number < PEM_ARRAY_SIZE(names))
		return names[number];
	memset(text, '1', 255);
	memcpy(text, number % 2 ? "counts-" : "refused-", number % 2 ? 7 : 8);
	return text;
}

static uint64_t size_of(uint8_t number)
{
	static const uint64_t sizes[] = {0, 4, 8, 100, 207, 208, 209, 4096, 65536, 1ull << 40};

	return sizes[number % PEM_ARRAY_SIZE(sizes)];
}

static uint32_t word_of(uint8_t number)
{
	static const uint32_t words[] = {0,          1,          0xffffffff,     0x7fffffff,
					 0x80000000, 4095,       PEM_POOL_MAGIC, PEM_COUNTS_MAGIC,
					 CHUNK,      0x00fffff0, 0x41414141};

	return words[number % PEM_ARRAY_SIZE(words)];
}

static void give_away(const char *name, uint8_t owner)
{
	uid_t uid = FIRST_UID + owner % 4;

	if (!geteuid())
		check(!fchownat(folder->directory_fd, name, uid, uid, AT_SYMLINK_NOFOLLOW));
}

static void write_pool(int fd, uint8_t more)
{
	struct pem_pool_header header = {.abi_version = PEM_ABI_VERSION,
					 .chunk_bytes = more & 1 ? 2 * CHUNK : CHUNK,
					 .chunk_count = CHUNKS,
					 .lane_count = PEM_LANE_COUNT_DEFAULT,
					 .event_capacity = PEM_EVENT_CAPACITY_DEFAULT,
					 .pid = more & 2 ? 1 : 0x3fffffff,
					 .start_clock = 1u + (more >> 4)};

	pem_pool__layout(&header);
	header.magic = PEM_POOL_MAGIC;
	check(pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	      !ftruncate(fd, (off_t)header.total_bytes));
}

static void write_counts(int fd, uint8_t more)
{
	uint32_t head[PEM_SESSION_HEAD_BYTES / 4] = {PEM_COUNTS_MAGIC, PEM_ABI_VERSION};

	memset(head + 2, more & 4 ? 0xff : 0, sizeof(head) - 8);
	memset((char *)head + offsetof(struct pem_session_page, lost_statistics), 0, 8);
	check(pwrite(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head));
	if (more & 8)
		check(!ftruncate(fd, (off_t)size_of(more >> 4)));
}

static void make_file(const uint8_t *step)
{
	static const char text[] = "pem-model\t2\n";
	const char *name = name_of(step[1]);
	int fd = openat(folder->directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	switch (step[2] % 4) {
	case 0:
		check(!ftruncate(fd, (off_t)size_of(step[3])));
		break;
	case 1:
		write_counts(fd, step[3]);
		break;
	case 2:
		write_pool(fd, step[3]);
		break;
	default:
		check(pwrite(fd, text, sizeof(text) - 1, 0) == sizeof(text) - 1);
		break;
	}
	close(fd);
	give_away(name, step[2] >> 4);
}

/* A file that is there; -1: none, or something else. */
static int open_file(uint8_t number)
{
	return openat(folder->directory_fd, name_of(number),
		      O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static void write_word(const uint8_t *step)
{
	uint32_t word = word_of(step[3]);
	off_t at = (step[2] & 0x3f) * 4;
	int fd = open_file(step[1]);
	struct stat st;

	/* What honest programs count shall be told from what this one does. */
	if (at == offsetof(struct pem_session_page, lost_statistics) ||
	    at == offsetof(struct pem_session_page, lost_statistics) + 4)
		at = 0;
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		check(pwrite(fd, &word, sizeof(word), at) == sizeof(word));
	if (fd >= 0)
		close(fd);
}

static void cut(const uint8_t *step)
{
	int fd = open_file(step[1]);

	/* no plain file */
	if (fd >= 0 && ftruncate(fd, (off_t)size_of(step[3])))
		errno = 0;
	if (fd >= 0)
		close(fd);
}

static void lock(const uint8_t *step)
{
	int *slot = &locks[step[3] % LOCKS];

	if (*slot >= 0)
		close(*slot);
	*slot = open_file(step[1]);
	if (*slot >= 0 && flock(*slot, (step[2] & 1 ? LOCK_EX : LOCK_SH) | LOCK_NB))
		errno = 0;
}

static void make_other(const uint8_t *step)
{
	const char *const links[] = {outside, "config",         "session",
				     "..",    name_of(step[3]), "/dev/zero"};
	const char *name = name_of(step[1]);
	int at = folder->directory_fd, result;

	switch (step[2] % 4) {
	case 0:
		result = mkdirat(at, name, step[3] & 1 ? 0700 : 0);
		break;
	case 1:
		result = mkfifoat(at, name, 0600);
		break;
	case 2:
		result = symlinkat(links[step[3] % PEM_ARRAY_SIZE(links)], at, name);
		break;
	default:
		result = mkdirat(at, name, 0700);
		if (!result && step[3] & 1)
			check(!mkdirat(at, "a-folder/below", 0700) || errno == ENOENT ||
			      errno == EEXIST || errno == ENOTDIR || errno == ELOOP);
		break;
	}
	if (!result)
		give_away(name, step[2] >> 4);
}

/* More users than the session tells apart. */
static void crowd(void)
{
	char name[32];
	unsigned i;
	int fd;

	for (i = 0; i < USERS_MAX + 10 && !is_crowded; i++) {
		snprintf(name, sizeof(name), "pool-2-%u", i);
		fd = openat(folder->directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		check(fd >= 0 && (geteuid() || !fchown(fd, 1000 + i, 1000)));
		close(fd);
	}
	is_crowded = true;
}

static void attack(const uint8_t *step)
{
	const char *other;
	char name[256];
	int at = folder->directory_fd, result = 0;

	snprintf(name, sizeof(name), "%s", name_of(step[1]));
	other = name_of(step[3]);
	switch (step[0] % 10) {
	case 0:
	case 1:
		make_file(step);
		break;
	case 2:
		write_word(step);
		break;
	case 3:
		cut(step);
		break;
	case 4:
		lock(step);
		break;
	case 5:
		make_other(step);
		break;
	case 6:
		result = linkat(at, name, at, other, 0);
		break;
	case 7:
		result = renameat2(at, name, at, other, step[2] & 1 ? RENAME_EXCHANGE : 0);
		break;
	case 8:
		result = unlinkat(at, name, step[2] & 1 ? AT_REMOVEDIR : 0);
		break;
	default:
		if (step[1] == 0xff)
			crowd();
		break;
	}
	/* so it was no attack */
	if (result)
		errno = 0;
}

static void gather_meanwhile(struct pem_session *s, struct pem_session_page *head)
{
	if (is_pending) {
		is_pending = false;
		attack(pending);
	}
	pem_session__gather_head(s, head);
}

/* --- honest programs --- */

static void be_honest(const uint8_t *step)
{
	struct pem_session_page **program = &honest[step[1] % HONEST];

	if (!*program) {
		*program = pem_counts__make(session->dirs->public_directory);
		check(*program && (*program)->magic == PEM_COUNTS_MAGIC);
	} else if (step[2] & 1) {
		check(!munmap(*program, PEM_SESSION_HEAD_BYTES));
		*program = NULL;
	} else {
		__atomic_fetch_add(&(*program)->lost_statistics, step[3], __ATOMIC_RELAXED);
		counted += step[3];
	}
}

/* --- the session scans --- */

static void act(uint8_t what)
{
	struct pem_producer *p;

	if (is_crowded && ++crowded_scans > 4) /* they take long */
		return;
	switch (what % 4) {
	case 0:
		pem_session__gather_losses(session);
		break;
	case 1:
		pem_session__scan_producers(session);
		break;
	case 2:
		pem_session__release_gone(session);
		break;
	default:
		for (p = session->processes->producers; p; p = p->next)
			pem_session__drain_producer(session, p, false);
		break;
	}
}

static void do_step(const uint8_t *step)
{
	switch (step[0] >> 6) {
	case 0:
		attack(step);
		break;
	case 1:
		memcpy(pending, step, sizeof(pending));
		is_pending = true;
		break;
	case 2:
		be_honest(step);
		break;
	default:
		act(step[1]);
		break;
	}
}

/* --- what has to be so afterwards --- */

/* Files of public folders that are mapped. */
static unsigned count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[600];
	unsigned count = 0;

	check(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "/pem-") && !strstr(line, "/pem-fuzz-");
	fclose(maps);
	return count;
}

static void check_users(void)
{
	const struct pem_dir *dir;
	unsigned users = 0;

	for (dir = session->dirs->first; dir; dir = dir->next)
		users += dir->public_folder == folder;
	check(users <= USERS_MAX);
}

static void check_honest(void)
{
	DIR *directory = pem_list_folder(folder->directory_fd);
	struct dirent *entry;
	char prefix[32];

	check(session->page->lost_statistics == counted);
	snprintf(prefix, sizeof(prefix), "counts-%d-", (int)getpid());
	while ((entry = readdir(directory)))
		check(strncmp(entry->d_name, prefix, strlen(prefix)) != 0);
	closedir(directory);
}

/* Is this what a program leaves for the session to take and remove, and nothing else? */
static bool is_taken(const char *name)
{
	static const char *const refusals[] = {"refused-1-1-28", "refused-1-2-28",
					       "refused-1-1-4095"};
	uint32_t magic = 0;
	struct stat st;
	size_t i;
	int fd;

	if (fstatat(folder->directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    st.st_nlink != 1)
		return false;
	for (i = 0; i < PEM_ARRAY_SIZE(refusals); i++) {
		if (!strcmp(name, refusals[i]))
			return true;
	}
	if (strncmp(name, "counts-", 7) != 0 || st.st_size != PEM_SESSION_HEAD_BYTES)
		return false;
	fd = openat(folder->directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	check(fd >= 0 && pread(fd, &magic, sizeof(magic), 0) == sizeof(magic));
	close(fd);
	return magic == PEM_COUNTS_MAGIC;
}

/* The last scan takes what it should, and leaves what it should not know. */
static void scan_at_end(void)
{
	bool was[PEM_ARRAY_SIZE(names) + 2], taken[PEM_ARRAY_SIZE(names) + 2];
	struct stat st;
	unsigned i;

	for (i = 0; i < PEM_ARRAY_SIZE(was); i++) {
		was[i] = !fstatat(folder->directory_fd, name_of((uint8_t)i), &st,
				  AT_SYMLINK_NOFOLLOW);
		taken[i] = was[i] && is_taken(name_of((uint8_t)i));
	}
	pem_session__scan_producers(session);
	for (i = 0; i < PEM_ARRAY_SIZE(was); i++)
		check(!fstatat(folder->directory_fd, name_of((uint8_t)i), &st,
			       AT_SYMLINK_NOFOLLOW) == (was[i] && !taken[i]));
}

static void check_outside(void)
{
	struct stat st;

	check(!stat(outside, &st) && st.st_mode == outside_was.st_mode && st.st_nlink == 1 &&
	      st.st_uid == outside_was.st_uid && st.st_size == outside_was.st_size &&
	      !memcmp(&st.st_mtim, &outside_was.st_mtim, sizeof(st.st_mtim)));
	check(!fstatat(session->directory_fd, "config", &st, 0) && S_ISREG(st.st_mode));
}

static void end_programs(void)
{
	unsigned i;

	for (i = 0; i < HONEST; i++) {
		if (honest[i])
			check(!munmap(honest[i], PEM_SESSION_HEAD_BYTES));
		honest[i] = NULL;
	}
	for (i = 0; i < LOCKS; i++) {
		if (locks[i] >= 0)
			close(locks[i]);
		locks[i] = -1;
	}
}

/* The folder goes, unless somebody has filled one in it: then it is closed. */
static void let_go(void)
{
	char path[sizeof(session->dirs->public_directory)], gone[96], command[128];
	struct pem_producer *p;
	struct stat st;

	for (p = session->processes->producers; p; p = p->next)
		p->dead = true;
	pem_session__release_gone(session);
	check(!session->processes->producers);
	memcpy(path, session->dirs->public_directory, sizeof(path));
	pem_session__close_dirs(session);
	check(lstat(path, &st) && errno == ENOENT);
	snprintf(gone, sizeof(gone), "%s.gone", path);
	if (lstat(gone, &st))
		return;
	check((st.st_mode & 07777) == 0700);
	snprintf(command, sizeof(command), "rm -rf %s", gone);
	check(!system(command));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	unsigned descriptors, mappings, i;

	if (!session)
		begin();
	pem_session__close_dirs(session); /* of the first turn: the session's own */
	session->page->lost_statistics = 0;
	counted = 0;
	is_pending = is_crowded = false;
	crowded_scans = 0;
	descriptors = count_descriptors();
	mappings = count_mappings();
	make_public();
	for (i = 0; i < STEPS_MAX && bytes >= 4; i++, data += 4, bytes -= 4)
		do_step(data);
	is_pending = false;
	end_programs();
	scan_at_end();
	check_honest();
	check_users();
	let_go();
	check_outside();
	check(count_descriptors() == descriptors && count_mappings() == mappings);
	if (++rounds % ROUNDS == 0) {
		pem_session__close(session);
		session = NULL;
	}
	return 0;
}
