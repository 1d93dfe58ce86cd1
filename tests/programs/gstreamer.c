/* SPDX-License-Identifier: MIT */
/*
 * gstreamer.c - pipelines of GStreamer whose stages know their own service
 *
 * Use: gstreamer [OPTION...] COUNT QUEUE MICROSECONDS MICROSECONDS...: COUNT buffers pass a stage
 * for each number, which works so long for a buffer, by its CPU time; or sleeps: s300. QUEUE is the
 * description of what is between two stages: queue, or queue2 max-size-buffers=3.
 * -s N: seek with a flush as the last stage has had N buffers. -e N: then end the stream. -r N:
 * then stop the pipeline, and start it again. -t N: then print PID and wait for a line of standard
 * input. -p N: before that make and free N pipelines, of a buffer each. -f: then fork; the child
 * runs such a pipeline of its own and forks not.
 *
 * At its end it prints to standard error, for each stage: NAME PID TID BUFFERS CPU_NS, of which
 * the last is the CPU time of its thread from its first buffer to its last one.
 */
#include <gst/gst.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STAGES 8

static struct stage {
	guint64 ns, items, begin_ns, end_ns;
	gboolean sleeps;
	int tid;
	char name[16];
} stages[STAGES];
static int count;
static guint64 moment; /* the last stage has had as many buffers */
static GstElement *pipeline;

static guint64 cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (guint64)now.tv_sec * 1000000000u + (guint64)now.tv_nsec;
}

static void on_buffer(GstElement *element, GstBuffer *buffer, struct stage *stage)
{
	struct timespec pause = {0, (long)stage->ns};
	guint64 begin = cpu_ns();

	(void)buffer;
	stage->tid = (int)gettid();
	stage->begin_ns = stage->items ? stage->begin_ns : begin;
	if (stage->sleeps)
		nanosleep(&pause, NULL);
	while (!stage->sleeps && cpu_ns() - begin < stage->ns)
		;
	stage->end_ns = cpu_ns();
	stage->items++;
	if (stage == &stages[count - 1] && stage->items == moment)
		gst_element_post_message(
			element, gst_message_new_application(GST_OBJECT(element),
							     gst_structure_new_empty("moment")));
}

/* Run a pipeline to the end of its stream. mode: what to do once at the moment. */
static void play(const char *text, char mode)
{
	GError *error = NULL;
	GstMessage *message;
	GstElement *element;
	gboolean is_over = FALSE;
	GstBus *bus;
	int i;

	pipeline = gst_parse_launch(text, &error);
	if (error)
		g_error("%s: %s", text, error->message);
	for (i = 0; i < count; i++) {
		element = gst_bin_get_by_name(GST_BIN(pipeline), stages[i].name);
		if (element)
			g_signal_connect(element, "handoff", G_CALLBACK(on_buffer), &stages[i]);
		gst_clear_object(&element);
	}
	bus = gst_element_get_bus(pipeline);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	while (!is_over) {
		message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE,
						     GST_MESSAGE_EOS | GST_MESSAGE_ERROR |
							     GST_MESSAGE_APPLICATION);
		is_over = GST_MESSAGE_TYPE(message) != GST_MESSAGE_APPLICATION;
		if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
			g_error("the pipeline failed");
		gst_message_unref(message);
		if (!is_over && mode == 's')
			gst_element_seek_simple(pipeline, GST_FORMAT_TIME,
						GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, 0);
		if (!is_over && mode == 'e')
			gst_element_send_event(pipeline, gst_event_new_eos());
		if (!is_over && mode == 'r') {
			gst_element_set_state(pipeline, GST_STATE_READY);
			gst_element_set_state(pipeline, GST_STATE_PLAYING);
		}
		if (!is_over && mode == 't' && (printf("%d\n", (int)getpid()), fflush(stdout)) == 0)
			getchar();
	}
	gst_element_set_state(pipeline, GST_STATE_NULL);
	gst_object_unref(bus);
	gst_object_unref(pipeline);
}

int main(int argc, char **argv)
{
	gboolean forks = FALSE;
	long pipelines = 0, i;
	pid_t child = -1;
	GString *text;
	char mode = 0;
	int option;

	gst_init(NULL, NULL);
	while ((option = getopt(argc, argv, "+s:e:r:t:p:f")) != -1) {
		if (option == 'p')
			pipelines = atol(optarg);
		else if (option == 'f')
			forks = TRUE;
		else if (option == '?')
			return 2;
		else
			moment = g_ascii_strtoull(optarg, NULL, 10), mode = (char)option;
	}
	if (argc - optind < 3 || argc - optind - 2 > STAGES)
		return 2;
	text = g_string_new(NULL);
	g_string_printf(text, "videotestsrc num-buffers=%s ! video/x-raw,width=16,height=16",
			argv[optind]);
	for (i = optind + 2; i < argc; i++, count++) {
		stages[count].sleeps = *argv[i] == 's';
		stages[count].ns =
			g_ascii_strtoull(argv[i] + stages[count].sleeps, NULL, 10) * 1000;
		snprintf(stages[count].name, sizeof(stages[count].name), "s%d", count + 1);
		g_string_append_printf(text, " ! %s%sidentity name=%s signal-handoffs=true",
				       count ? argv[optind + 1] : "", count ? " ! " : "",
				       stages[count].name);
	}
	g_string_append(text, " ! fakesink sync=false");
	for (i = 0; i < pipelines; i++)
		play("fakesrc num-buffers=1 ! queue ! queue ! fakesink", 0);
	child = forks ? fork() : -1;
	play(text->str, mode);
	if (child > 0)
		waitpid(child, NULL, 0);
	for (i = 0; i < count; i++)
		fprintf(stderr, "%s %d %d %llu %llu\n", stages[i].name, (int)getpid(),
			stages[i].tid, (unsigned long long)stages[i].items,
			(unsigned long long)(stages[i].end_ns - stages[i].begin_ns));
	g_string_free(text, TRUE);
	return 0;
}
