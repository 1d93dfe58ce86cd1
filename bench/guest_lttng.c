// SPDX-License-Identifier: MIT
/*
 * guest_lttng.c - holds a session of lttng-modules open while a command runs, in a guest
 *
 *	guest_lttng SYSCALL COMMAND...	records the entries of one system call into buffers as
 *					'lttng create' makes them
 *
 * The buffers are not drained meanwhile, so only the tracer's own instructions are added. The
 * buffers must be large enough. Prints how many bytes of records the buffers hold at the end, and
 * how many events were discarded. It uses the module's header, which is fetched with its source
 * (guest_peers.py). LTTng's daemons are not needed. Not here: measuring.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lttng/abi.h>
/* From the header of its ring buffer, which includes the kernel's own headers. */
#define GET_NEXT_SUBBUF _IO(0xF6, 0x05)
#define PUT_NEXT_SUBBUF _IO(0xF6, 0x06)

#define STREAMS_MAX 64

static int checked(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

/* Make a channel like a kernel channel of 'lttng enable-channel' without options. */
static int make_channel(int session)
{
	struct lttng_kernel_abi_channel channel;

	memset(&channel, 0, sizeof(channel));
	channel.subbuf_size = 1u << 20;
	channel.num_subbuf = 4;
	channel.read_timer_interval = 200000;
	channel.output = LTTNG_KERNEL_ABI_SPLICE;
	return checked(ioctl(session, LTTNG_KERNEL_ABI_CHANNEL, &channel), "channel");
}

static void record_entries(int channel, const char *name)
{
	struct lttng_kernel_abi_event event;
	int fd;

	memset(&event, 0, sizeof(event));
	snprintf(event.name, sizeof(event.name), "%s", name);
	event.instrumentation = LTTNG_KERNEL_ABI_SYSCALL;
	event.u.syscall.entryexit = LTTNG_KERNEL_ABI_SYSCALL_ENTRY;
	fd = checked(ioctl(channel, LTTNG_KERNEL_ABI_EVENT, &event), "event");
	checked(ioctl(fd, LTTNG_KERNEL_ABI_ENABLE), "enable event");
}

/* Add up the bytes in a CPU's buffer, and the events that found no room there. */
static void count(int stream, uint64_t *bytes, uint64_t *discarded)
{
	uint64_t bits, lost = 0;

	while (!ioctl(stream, GET_NEXT_SUBBUF)) {
		checked(ioctl(stream, LTTNG_KERNEL_ABI_RING_BUFFER_GET_CONTENT_SIZE, &bits),
			"content");
		checked(ioctl(stream, LTTNG_KERNEL_ABI_RING_BUFFER_GET_EVENTS_DISCARDED, &lost),
			"discarded");
		*bytes += bits / 8;
		checked(ioctl(stream, PUT_NEXT_SUBBUF), "put");
	}
	*discarded += lost;
}

int main(int argc, char **argv)
{
	int lttng, session, channel, stream[STREAMS_MAX], streams, i, status;
	uint64_t bytes = 0, discarded = 0;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "Use: guest_lttng SYSCALL COMMAND...\n");
		return 1;
	}
	lttng = checked(open("/proc/lttng", O_RDWR | O_CLOEXEC), "/proc/lttng");
	session = checked(ioctl(lttng, LTTNG_KERNEL_ABI_SESSION), "session");
	channel = make_channel(session);
	for (streams = 0; streams < STREAMS_MAX; streams++)
		if ((stream[streams] = ioctl(channel, LTTNG_KERNEL_ABI_STREAM)) < 0)
			break;
	record_entries(channel, argv[1]);
	checked(ioctl(session, LTTNG_KERNEL_ABI_SESSION_START), "start");

	child = checked(fork(), "fork");
	if (!child) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	checked(waitpid(child, &status, 0), "wait");
	checked(ioctl(session, LTTNG_KERNEL_ABI_SESSION_STOP), "stop");
	for (i = 0; i < streams; i++)
		count(stream[i], &bytes, &discarded);
	printf("held %llu %llu\n", (unsigned long long)bytes, (unsigned long long)discarded);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
