// SPDX-License-Identifier: MIT
/*
 * writer_streams.c - the stream files of a trace being written: whole packets only, whatever
 * happens
 */
#include "writer/trace_writer.h"
#include "writer/trace_stage.h"
#include "writer/trace_writer_internal.h"
#include "session_fixture.h"

#include <pem/clock.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct pem_model *model;
static struct pem_trace_writer *writer;

static const struct pem_trace_info info = {
	.host = "here", .start_time_ns = 1000000000, .start_clock = 1, .clock_hz = 1000000000};

static int set_up(void **state)
{
	struct pem_error error = {""};

	if (folder_make(state))
		return -1;
	model = pem_model__new();
	pem_model__add_catalogue(model, &error);
	writer = pem_trace_writer__new(trace_path, model, &info, &error);
	return writer ? 0 : -1;
}

static int tear_down(void **state)
{
	pem_trace_writer__free(writer);
	pem_model__free(model);
	return folder_remove(state);
}

/* A packet of bytes of content that stands for one record. */
static int put(const char *stream, uint64_t clock, size_t bytes, uint64_t discarded)
{
	union {
		struct pem_packet packet;
		uint8_t bytes[4096];
	} u;

	memset(&u, 0x5a, sizeof(u));
	memset(&u.packet, 0, sizeof(u.packet));
	u.packet.timestamp_begin = u.packet.timestamp_end = clock;
	u.packet.content_size = bytes * 8;
	u.packet.events_discarded = discarded;
	u.packet.record_count = 1;
	return pem_trace_writer__packet(writer, stream, &u.packet, sizeof(u));
}

/* The whole of a stream file; the caller frees it. */
static uint8_t *stream_file(const char *stream, size_t *bytes)
{
	int fd = open(trace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[32];
	FILE *file;
	uint8_t *data = malloc(1 << 20);

	assert_true(fd >= 0 && data);
	snprintf(name, sizeof(name), "%s", stream);
	file = fdopen(openat(fd, name, O_RDONLY | O_CLOEXEC), "r");
	assert_non_null(file);
	*bytes = fread(data, 1, 1 << 20, file);
	fclose(file);
	close(fd);
	return data;
}

/* Packets of a stream, all whole; the last one in *last. */
static unsigned packets(const char *stream, struct pem_packet *last)
{
	size_t bytes, at = 0;
	uint8_t *data = stream_file(stream, &bytes);
	unsigned count = 0;

	while (at < bytes) {
		assert_true(bytes - at >= PEM_PACKET_HEADER_BYTES);
		memcpy(last, data + at, sizeof(*last));
		assert_int_equal(last->magic, PEM_CTF_MAGIC);
		assert_int_equal(last->packet_seq_num, count);
		assert_true(last->content_size <= last->packet_size);
		assert_int_equal(last->packet_size % 64, 0);
		assert_true(last->packet_size / 8 <= bytes - at);
		at += last->packet_size / 8;
		count++;
	}
	free(data);
	return count;
}

static void packets_are_padded_to_8_bytes(void **state)
{
	struct pem_packet last;
	size_t bytes, i;
	uint8_t *data;

	(void)state;
	assert_int_equal(put("u_1_0_1", 10, PEM_PACKET_HEADER_BYTES + 13, 0), 0);
	assert_int_equal(put("u_1_0_1", 20, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
	data = stream_file("u_1_0_1", &bytes);
	assert_int_equal(bytes, 2 * PEM_PACKET_HEADER_BYTES + 32);
	for (i = 0; i < 13; i++)
		assert_int_equal(data[PEM_PACKET_HEADER_BYTES + i], 0x5a);
	for (; i < 16; i++)
		assert_int_equal(data[PEM_PACKET_HEADER_BYTES + i], 0);
	free(data);
	assert_int_equal(packets("u_1_0_1", &last), 2);
}

static void more_streams_than_may_be_open(void **state)
{
	struct pem_packet last;
	char name[32];
	unsigned i, round;

	(void)state;
	for (round = 1; round <= 3; round++) {
		for (i = 0; i < 300; i++) {
			snprintf(name, sizeof(name), "u_%u_0_1", i);
			assert_int_equal(put(name, round, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
		}
	}
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "u_%u_0_1", i);
		assert_int_equal(packets(name, &last), 3);
		assert_int_equal(last.stream_instance_id, i);
		assert_int_equal(last.timestamp_end, 3);
	}
}

static void what_was_lost_never_shrinks(void **state)
{
	struct pem_packet last;

	(void)state;
	put("u_1_0_1", 10, PEM_PACKET_HEADER_BYTES + 16, 5);
	put("u_1_0_1", 20, PEM_PACKET_HEADER_BYTES + 16, 3);
	assert_int_equal(packets("u_1_0_1", &last), 3);
	assert_int_equal(last.events_discarded, 5);
}

/* What was lost is the difference of two packets' counts. */
static void a_stream_that_begins_with_losses_states_none_first(void **state)
{
	const struct pem_packet *first;
	struct pem_packet last;
	size_t bytes;

	(void)state;
	pem_trace_writer__discarded(writer, "u_1_0_1", 7, 100);
	assert_int_equal(packets("u_1_0_1", &last), 2);
	assert_int_equal(last.events_discarded, 7);
	first = (const struct pem_packet *)stream_file("u_1_0_1", &bytes);
	assert_int_equal(first->events_discarded, 0);
	assert_int_equal(first->timestamp_begin, 100);
	assert_int_equal(first->content_size, PEM_PACKET_HEADER_BYTES * 8);
	free((void *)(uintptr_t)first);
}

static void losses_at_the_end_are_stated_once(void **state)
{
	struct pem_packet last;

	(void)state;
	put("u_1_0_1", 10, PEM_PACKET_HEADER_BYTES + 16, 0);
	put("u_1_0_1", 20, PEM_PACKET_HEADER_BYTES + 16, 5);
	pem_trace_writer__discarded(writer, "u_1_0_1", 5, 100);
	assert_int_equal(packets("u_1_0_1", &last), 2);
	pem_trace_writer__discarded(writer, "u_1_0_1", 9, 100);
	assert_int_equal(packets("u_1_0_1", &last), 3);
	assert_int_equal(last.events_discarded, 9);
	assert_int_equal(last.timestamp_begin, 100);
	assert_int_equal(last.content_size, PEM_PACKET_HEADER_BYTES * 8);
}

/*
 * A recovery writes a lane's next packets to a file of its own: counts begin anew there, and time
 * does not.
 */
static void a_stream_that_is_gone_on_with(void **state)
{
	const struct pem_earlier_stream *earlier;
	struct pem_trace_writer *first = writer;
	struct pem_error error = {""};
	struct pem_packet last;
	char stage[160];
	int fd, stage_fd;

	(void)state;
	put("u_1_0_1", 10, PEM_PACKET_HEADER_BYTES + 16, 0);
	put("u_1_0_1", 100, PEM_PACKET_HEADER_BYTES + 16, 5);
	fd = open(trace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(stage, sizeof(stage), "%s/stage", folder);
	assert_int_equal(mkdir(stage, 0700), 0);
	stage_fd = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	writer = pem_trace_writer__resume(fd, stage_fd, model, &info, &error);
	close(fd);
	close(stage_fd);
	pem_trace_writer__free(first);
	if (!writer)
		fail_msg("%s", error.text);
	earlier = pem_trace_writer__earlier(writer, "u_1_0_1");
	assert_non_null(earlier);
	assert_int_equal(earlier->last_clock, 100);
	assert_int_equal(pem_trace_writer__stream_clock(writer, "u_1_0_1"), 100);
	assert_int_equal(pem_trace_writer__last_clock(writer), 100);
	put("u_1_0_1", 120, PEM_PACKET_HEADER_BYTES + 16, 5);
	put("u_1_0_1", 130, PEM_PACKET_HEADER_BYTES + 16, 8);
	pem_trace_writer__discarded(writer, "u_1_0_1", 8, 140);
	snprintf(trace_path, sizeof(trace_path), "%s/stage", folder);
	assert_int_equal(packets("u_1_0_1", &last), 2);
	assert_int_equal(last.events_discarded, 3);
	assert_int_equal(last.stream_instance_id, 1);
}

/* What begins before the earlier stream ended begins with its end. */
static void time_goes_on_from_an_earlier_stream(void **state)
{
	struct pem_trace_writer *first = writer;
	struct pem_error error = {""};
	struct pem_packet last;
	int fd;

	(void)state;
	put("u_1_0_1", 100, PEM_PACKET_HEADER_BYTES + 16, 0);
	fd = open(trace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(trace_path, sizeof(trace_path), "%s/stage", folder);
	assert_int_equal(mkdir(trace_path, 0700), 0);
	writer = pem_trace_writer__resume(fd, open(trace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
					  model, &info, &error);
	close(fd);
	pem_trace_writer__free(first);
	if (!writer)
		fail_msg("%s", error.text);
	put("u_1_0_1", 50, PEM_PACKET_HEADER_BYTES + 16, 0);
	assert_int_equal(packets("u_1_0_1", &last), 1);
	assert_int_equal(last.timestamp_begin, 100);
}

static void time_goes_on_within_a_stream(void **state)
{
	struct pem_packet last;

	(void)state;
	put("u_1_0_1", 100, PEM_PACKET_HEADER_BYTES + 16, 0);
	pem_trace_writer__discarded(writer, "u_1_0_1", 1, 50);
	assert_int_equal(packets("u_1_0_1", &last), 2);
	assert_int_equal(last.timestamp_begin, 100);
	assert_int_equal(last.timestamp_end, 100);
}

static void impossible_packets_are_refused(void **state)
{
	struct pem_packet packet = {.content_size = PEM_PACKET_HEADER_BYTES * 8 - 8};
	char name[200];

	(void)state;
	assert_int_equal(pem_trace_writer__packet(writer, "u_1_0_1", &packet, sizeof(packet)),
			 -EINVAL);
	packet.content_size = PEM_PACKET_HEADER_BYTES * 8 + 8;
	assert_int_equal(pem_trace_writer__packet(writer, "u_1_0_1", &packet, sizeof(packet)),
			 -EINVAL);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(put(name, 1, PEM_PACKET_HEADER_BYTES + 16, 0), -EINVAL);
	assert_int_equal(pem_trace_writer__packets(writer, name, &packet, 0), -EINVAL);
	assert_int_equal(put("u_1_0_1", 1, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
}

static void records_of_a_refused_packet_are_lost(void **state)
{
	struct pem_packet packet = {.content_size = PEM_PACKET_HEADER_BYTES * 8 + 8,
				    .record_count = 3};
	struct pem_packet last;

	(void)state;
	assert_int_equal(put("u_1_0_1", 10, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
	assert_int_equal(pem_trace_writer__packet(writer, "u_1_0_1", &packet, sizeof(packet)),
			 -EINVAL);
	assert_int_equal(put("u_1_0_1", 20, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
	assert_int_equal(packets("u_1_0_1", &last), 2);
	assert_int_equal(last.events_discarded, 3);
}

/* Two packets of two records each, both without content; the second one's clock is earlier. */
static void make_two(struct pem_packet *two)
{
	memset(two, 0, 2 * sizeof(*two));
	two[0].content_size = two[1].content_size = PEM_PACKET_HEADER_BYTES * 8;
	two[0].record_count = two[1].record_count = 2;
	two[0].timestamp_begin = two[0].timestamp_end = 40;
	two[1].timestamp_begin = two[1].timestamp_end = 50;
	two[0].events_discarded = two[1].events_discarded = 5;
}

static void packets_at_once_are_all_or_none(void **state)
{
	static const uint64_t wrong[] = {0, PEM_PACKET_HEADER_BYTES * 8 - 8,
					 PEM_PACKET_HEADER_BYTES * 8 + 8, UINT64_MAX};
	struct pem_packet two[2], before[2], last;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		make_two(two);
		two[1].content_size = wrong[i];
		memcpy(before, two, sizeof(two));
		assert_int_equal(pem_trace_writer__packets(writer, "u_1_0_1", two, sizeof(two)),
				 -EINVAL);
		assert_memory_equal(before, two, sizeof(two));
	}
	assert_int_equal(pem_trace_writer__span_clock(writer), 0);
	assert_int_equal(pem_trace_writer__stream_clock(writer, "u_1_0_1"), 0);
	make_two(two);
	assert_int_equal(pem_trace_writer__packets(writer, "u_1_0_1", two, sizeof(two)), 0);
	assert_int_equal(pem_trace_writer__span_clock(writer), 40);
	/* The empty one that states no loss, and these two. */
	assert_int_equal(packets("u_1_0_1", &last), 3);
	assert_int_equal(last.events_discarded, 5 + 4 * 4);
}

/* The bytes end where a page that can't be read begins. */
static void packets_end_within_a_header(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pem_packet two[2], last;
	size_t left, bytes;

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	make_two(two);
	for (left = 8; left < PEM_PACKET_HEADER_BYTES; left += 8) {
		bytes = sizeof(two[0]) + left;
		memcpy(pages + page - bytes, two, bytes);
		assert_int_equal(
			pem_trace_writer__packets(writer, "u_1_0_1", pages + page - bytes, bytes),
			-EINVAL);
	}
	assert_int_equal(pem_trace_writer__packets(writer, "u_1_0_1", pages + page, 0), 0);
	munmap(pages, 2 * page);
	assert_int_equal(put("u_1_0_1", 60, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
	assert_int_equal(packets("u_1_0_1", &last), 1);
	assert_int_equal(last.events_discarded, 2 * (PEM_PACKET_HEADER_BYTES / 8 - 1));
}

static int keep(void *arg, const char *stream, const struct pem_packet *packet, size_t bytes)
{
	unsigned *kept = arg;

	(void)stream;
	(void)packet;
	(void)bytes;
	return ++*kept > 2 ? -ENOSPC : 0;
}

static void a_store_gets_whole_packets_only(void **state)
{
	unsigned kept = 0;
	const struct pem_packet_store store = {.arg = &kept, .packet = keep};
	struct pem_packet two[2];

	(void)state;
	pem_trace_writer__keep_in(writer, &store);
	make_two(two);
	two[1].content_size = 0;
	assert_int_equal(pem_trace_writer__packets(writer, "u_1_0_1", two, sizeof(two)), -EINVAL);
	assert_int_equal(kept, 0);
	make_two(two);
	assert_int_equal(pem_trace_writer__packets(writer, "u_1_0_1", two, sizeof(two)), 0);
	assert_int_equal(kept, 2);
}

/* A device that is full can't be cut, which is another failure. */
static void the_first_failure_is_told(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (full < 0)
		skip();
	assert_int_equal(put("u_1_0_1", 1, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
	assert_true(dup2(full, writer->streams[0]->fd) >= 0);
	close(full);
	assert_int_equal(put("u_1_0_1", 2, PEM_PACKET_HEADER_BYTES + 16, 0), -ENOSPC);
	assert_int_equal(pem_trace_writer__failed(writer), -ENOSPC);
}

/* What a failed write has left in the file is cut off. */
static void a_part_of_a_packet_is_cut_off(void **state)
{
	struct rlimit was, few;
	struct stat st;

	(void)state;
	assert_int_equal(put("u_1_0_1", 1, PEM_PACKET_HEADER_BYTES + 16, 0), 0);
	assert_int_equal(fstat(writer->streams[0]->fd, &st), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	few = (struct rlimit){(rlim_t)st.st_size + 20, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	assert_int_equal(put("u_1_0_1", 2, PEM_PACKET_HEADER_BYTES + 16, 0), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	few.rlim_cur = (rlim_t)st.st_size;
	assert_int_equal(fstat(writer->streams[0]->fd, &st), 0);
	assert_int_equal(st.st_size, few.rlim_cur);
}

/* The C library's is called by this name, unless memory is to be missing. */
static bool is_out_of_memory;

FILE *open_memstream(char **text, size_t *bytes)
{
	FILE *(*real)(char **text, size_t *bytes);
	void *found = dlsym(RTLD_NEXT, "open_memstream");

	if (is_out_of_memory) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(&real, &found, sizeof(real));
	return real(text, bytes);
}

static void a_writer_without_memory_says_so(void **state)
{
	struct pem_error error = {"nothing was said"};
	char path[160];

	(void)state;
	snprintf(path, sizeof(path), "%s/other", folder);
	is_out_of_memory = true;
	assert_null(pem_trace_writer__new(path, model, &info, &error));
	is_out_of_memory = false;
	assert_int_equal(errno, ENOMEM);
	assert_string_equal(error.text, "out of memory");
}

static void a_failed_write_leaves_whole_packets(void **state)
{
	struct rlimit old, small = {5000, RLIM_INFINITY};
	struct pem_packet last;
	int i, failures = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (i = 0; i < 10; i++)
		failures += put("u_1_0_1", (uint64_t)i, 1000, 0) != 0;
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(failures, 5);
	assert_int_equal(pem_trace_writer__failed(writer), -EFBIG);
	assert_int_equal(packets("u_1_0_1", &last), 5);
}

static void a_folder_in_use_is_refused(void **state)
{
	struct pem_error error = {""};

	(void)state;
	assert_null(pem_trace_writer__new(trace_path, model, &info, &error));
	assert_int_equal(errno, EEXIST);
	assert_non_null(strstr(error.text, trace_path));
}

/*
 * As when one process has looked, and hands its descriptor to another, which shares its place in
 * the folder.
 */
static void a_folder_in_use_is_so_at_the_second_look_too(void **state)
{
	int fd = open(trace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int other = dup(fd);

	(void)state;
	assert_true(other >= 0);
	assert_false(pem_folder_is_empty(fd));
	assert_false(pem_folder_is_empty(other));
	close(other);
	close(fd);
}

/* metadata of a trace of its own, and what pem_trace__read_uuid() says of it */
static int uuid_of(const char *metadata, uint8_t uuid[16])
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), file, result;
	ssize_t bytes = (ssize_t)strlen(metadata);

	file = openat(fd, "metadata", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	assert_true(write(file, metadata, (size_t)bytes) == bytes);
	close(file);
	result = pem_trace__read_uuid(fd, uuid);
	close(fd);
	return result;
}

static void a_uuid_is_read_of_whole_bytes_only(void **state)
{
	static const uint8_t ours[16] = {0x6f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff};
	uint8_t uuid[16];

	(void)state;
	assert_int_equal(uuid_of("uuid = \"6f010203-0405-0607-0809-0a0b0c0d0eff\"", uuid), 0);
	assert_memory_equal(uuid, ours, sizeof(uuid));
	assert_int_equal(uuid_of("uuid = \"6f010203-0405-0607-0809-0a0b0c0d0ef", uuid), -EINVAL);
	assert_int_equal(uuid_of("uuid = \"6f010203-0405-0607-0809-0a0b0c0d0e\"", uuid), -EINVAL);
	assert_int_equal(uuid_of("uuid = \"0x1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 \"", uuid), -EINVAL);
	assert_int_equal(uuid_of("uuid = \"", uuid), -EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(packets_are_padded_to_8_bytes),
		TEST(more_streams_than_may_be_open),
		TEST(what_was_lost_never_shrinks),
		TEST(a_stream_that_begins_with_losses_states_none_first),
		TEST(losses_at_the_end_are_stated_once),
		TEST(time_goes_on_within_a_stream),
		TEST(a_stream_that_is_gone_on_with),
		TEST(time_goes_on_from_an_earlier_stream),
		TEST(impossible_packets_are_refused),
		TEST(records_of_a_refused_packet_are_lost),
		TEST(packets_at_once_are_all_or_none),
		TEST(packets_end_within_a_header),
		TEST(a_store_gets_whole_packets_only),
		TEST(the_first_failure_is_told),
		TEST(a_part_of_a_packet_is_cut_off),
		TEST(a_writer_without_memory_says_so),
		TEST(a_failed_write_leaves_whole_packets),
		TEST(a_folder_in_use_is_refused),
		TEST(a_folder_in_use_is_so_at_the_second_look_too),
		TEST(a_uuid_is_read_of_whole_bytes_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
