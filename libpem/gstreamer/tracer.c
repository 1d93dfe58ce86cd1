/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tracer.c - a plugin of GStreamer that shows the queues of its pipelines to observers
 *
 * A tracer named pem (GST_TRACERS=pem) follows the elements queue, queue2 and multiqueue, in push
 * mode. The thread that calls a queue's sink pad is the producer, the task of its source pad the
 * consumer; items are buffers. The counters are those of pem/stream_shim.h.
 *
 * An element queue raises the signals overrun and underrun before a thread waits. A silent one, and
 * the other elements, do not. There a consumer waits if the queue is empty as it comes back. Each
 * call of a producer may be a wait, and the shim decides by whether the consumer woke it.
 *
 * A struct watched belongs to the two pads and the two signals of a queue, and goes with the last
 * one of them. No lock is held over calls into other elements. The only lock is taken when a queue
 * is seen first and when it goes.
 *
 * A thread is named by the elements that it runs: from a queue to the next one, or from a source.
 *
 * Not here: the queues of elements other than these, and pull mode (queue2 that downloads).
 */
#define GST_USE_UNSTABLE_API
#include <pem/stream_shim.h>

#include <gst/gst.h>

#define LATELY 16u

struct watched {
	struct pem_stream *stream; /* NULL: it could not be made */
	guint items; /* in the call of the sink pad */
	gboolean is_silent; /* no signal tells who waits */
	gboolean pops_pushes; /* the consumer is in a call of the next element */
	gboolean is_last; /* and that call is the stream's end */
};

typedef struct {
	GstTracer parent;
} PemTracer;
typedef struct {
	GstTracerClass parent;
} PemTracerClass;
GType pem_tracer_get_type(void);
G_DEFINE_TYPE(PemTracer, pem_tracer, GST_TYPE_TRACER)

static GMutex lock;
static GQuark watched_quark;
static struct watched none; /* of pads that are not a queue's */
/* Queues that are gone keep their counters for a while: observers read a few times a second. */
static struct pem_stream *lately[LATELY];
static guint lately_next;

/* The queue that the calling thread pops from, and the one that it is named after; 0: none. */
static __thread uint32_t pops_from, named_for;
static __thread gboolean is_in_pop; /* The thread is in a call of the element after its queue. */
static __thread gint stops_seen;
static gint stops; /* of queues */
static void name_thread(struct watched *w, GstPad *from);

/*
 * A thread of a pool may come back to another queue. One that waited for a buffer as its queue
 * stopped has not noticed that.
 */
static void forget_stopped(void)
{
	gint now = g_atomic_int_get(&stops);

	if (stops_seen == now || is_in_pop)
		return;
	stops_seen = now;
	pops_from = named_for = 0;
}

/* --- the queues --- */

static void free_watched(gpointer memory)
{
	struct watched *w = memory;
	struct pem_stream *oldest;

	if (!w->stream)
		return;
	pem_stream_leave(w->stream, PEM_STREAM_PUSHES);
	pem_stream_leave(w->stream, PEM_STREAM_POPS);
	g_mutex_lock(&lock);
	oldest = lately[lately_next];
	lately[lately_next] = w->stream;
	lately_next = (lately_next + 1) % LATELY;
	g_mutex_unlock(&lock);
	pem_stream_release(oldest);
}

static void put_watched(gpointer memory)
{
	g_atomic_rc_box_release_full(memory, free_watched);
}

static void put_closure(gpointer memory, GClosure *closure)
{
	(void)closure;
	put_watched(memory);
}

/* Signals of an element queue, in the thread that is about to wait. */
static void on_full(GstElement *element, struct watched *w)
{
	(void)element;
	if (w->stream && !w->is_silent)
		pem_stream_wait(w->stream, PEM_STREAM_PUSHES);
}

static void on_empty(GstElement *element, struct watched *w)
{
	GstPad *pad;

	if (!w->stream || w->is_silent)
		return;
	forget_stopped();
	/* It may wait here before it has had a buffer. */
	pad = named_for != w->stream->id ? gst_element_get_static_pad(element, "src") : NULL;
	if (pad)
		name_thread(w, pad);
	gst_clear_object(&pad);
	pem_stream_wait(w->stream, PEM_STREAM_POPS);
}

static void listen(GstElement *element, struct watched *w, const char *signal, GCallback callback)
{
	g_signal_connect_data(element, signal, callback, g_atomic_rc_box_acquire(w), put_closure,
			      (GConnectFlags)0);
}

static gboolean is_queue(GstElement *element)
{
	const char *type = G_OBJECT_TYPE_NAME(element);

	return !strcmp(type, "GstQueue") || !strcmp(type, "GstQueue2") ||
	       !strcmp(type, "GstMultiQueue");
}

/* The other pad of a queue. NULL: it has none. The caller owns it. */
static GstPad *other_pad(GstPad *pad)
{
	GstIterator *pads = gst_pad_iterate_internal_links(pad);
	GValue value = G_VALUE_INIT;
	GstPad *other = NULL;

	if (pads && gst_iterator_next(pads, &value) == GST_ITERATOR_OK)
		other = g_value_dup_object(&value);
	if (G_IS_VALUE(&value))
		g_value_unset(&value);
	if (pads)
		gst_iterator_free(pads);
	return other;
}

/* Follow the queue that has these two pads. The lock is held. */
static void follow(GstElement *element, GstPad *pad, GstPad *other)
{
	struct watched *w = g_atomic_rc_box_new0(struct watched);
	gboolean is_silent = TRUE, is_many = !strcmp(G_OBJECT_TYPE_NAME(element), "GstMultiQueue");
	GstPad *source = GST_PAD_IS_SRC(pad) ? pad : other;
	const char *number = is_many ? strrchr(GST_OBJECT_NAME(source), '_') : NULL;
	guint capacity = 0;
	char *name;

	/* A multiqueue puts more into one queue while another one is empty. */
	if (!is_many)
		g_object_get(element, "max-size-buffers", &capacity, NULL);
	if (!strcmp(G_OBJECT_TYPE_NAME(element), "GstQueue"))
		g_object_get(element, "silent", &is_silent, NULL);
	w->is_silent = is_silent;
	/* The pads of a multiqueue are src_0 and so on. */
	name = g_strdup_printf("%s%s", GST_OBJECT_NAME(element), number ? number : "");
	w->stream = pem_stream_adopt(name, capacity);
	g_free(name);
	if (!is_silent) {
		listen(element, w, "overrun", G_CALLBACK(on_full));
		listen(element, w, "underrun", G_CALLBACK(on_empty));
	}
	g_object_set_qdata_full(G_OBJECT(other), watched_quark, g_atomic_rc_box_acquire(w),
				put_watched);
	g_object_set_qdata_full(G_OBJECT(pad), watched_quark, w, put_watched);
}

/* What a pad is of, which had no call before. */
static struct watched *examine(GstPad *pad)
{
	GstElement *element = gst_pad_get_parent_element(pad);
	GstPad *other = element && is_queue(element) ? other_pad(pad) : NULL;
	struct watched *w;

	g_mutex_lock(&lock);
	w = g_object_get_qdata(G_OBJECT(pad), watched_quark);
	if (!w && other)
		follow(element, pad, other);
	else if (!w)
		g_object_set_qdata(G_OBJECT(pad), watched_quark, &none);
	w = g_object_get_qdata(G_OBJECT(pad), watched_quark);
	g_mutex_unlock(&lock);
	gst_clear_object(&other);
	gst_clear_object(&element);
	return w;
}

/* The queue that a pad is of. NULL: it is of none that is shown. */
static struct watched *watched_by(GstPad *pad)
{
	struct watched *w = g_object_get_qdata(G_OBJECT(pad), watched_quark);

	if (!w)
		w = examine(pad);
	return w->stream ? w : NULL;
}

/* --- names of threads --- */

/* The pad that a pad is linked with, through the borders of bins. NULL: none. The caller owns it.
 */
static GstPad *linked_pad(GstPad *pad)
{
	GstPad *peer = gst_pad_get_peer(pad);
	GstProxyPad *inner;

	while (peer && GST_IS_PROXY_PAD(peer)) {
		inner = gst_proxy_pad_get_internal(GST_PROXY_PAD(peer));
		gst_object_unref(peer);
		peer = inner ? gst_pad_get_peer(GST_PAD(inner)) : NULL;
		gst_clear_object(&inner);
	}
	return peer;
}

/* The element's only pad on its other side. NULL: it has none, or several. The caller owns it. */
static GstPad *only_pad(GstElement *element, gboolean is_down)
{
	GstPad *pad = NULL;
	GList *pads;

	GST_OBJECT_LOCK(element);
	pads = is_down ? element->srcpads : element->sinkpads;
	if (pads && !pads->next)
		pad = gst_object_ref(pads->data);
	GST_OBJECT_UNLOCK(element);
	return pad;
}

/* Name the calling thread by the elements from a queue's pad on, up to the next queue, or branch.
 */
static void name_thread(struct watched *w, GstPad *from)
{
	gboolean is_down = GST_PAD_IS_SRC(from);
	GstPad *pad = gst_object_ref(from), *peer;
	GstElement *element;
	char *name = NULL, *longer;
	unsigned i;

	for (i = 0; pad && i < 8; i++) {
		peer = linked_pad(pad);
		element = peer ? gst_pad_get_parent_element(peer) : NULL;
		gst_clear_object(&pad);
		gst_clear_object(&peer);
		if (!element || is_queue(element)) {
			gst_clear_object(&element);
			break;
		}
		longer = !name     ? gst_element_get_name(element)
			 : is_down ? g_strconcat(name, "+", GST_OBJECT_NAME(element), NULL)
				   : g_strconcat(GST_OBJECT_NAME(element), "+", name, NULL);
		g_free(name);
		name = longer;
		pad = only_pad(element, is_down);
		gst_clear_object(&element);
	}
	gst_clear_object(&pad);
	named_for = w->stream->id;
	pem_stream_copy_name(pem_stream_thread.stage, name);
	pem_stream_thread.version++;
	g_free(name);
}

/* --- the producer: a sink pad is called --- */

static void begin_push(GstPad *pad, struct watched *w, guint items)
{
	if (!w)
		return;
	forget_stopped();
	if (!pops_from && !named_for)
		name_thread(w, pad);
	w->items = items;
	pem_stream_wake(w->stream, PEM_STREAM_PUSHES);
	if (w->is_silent && pem_stream_queued(w->stream))
		pem_stream_wait(w->stream, PEM_STREAM_PUSHES);
}

static void on_chain(GstTracer *self, guint64 ts, GstPad *pad, GstBuffer *buffer)
{
	(void)self, (void)ts, (void)buffer;
	begin_push(pad, watched_by(pad), 1);
}

static void on_chain_list(GstTracer *self, guint64 ts, GstPad *pad, GstBufferList *list)
{
	(void)self, (void)ts;
	begin_push(pad, watched_by(pad), gst_buffer_list_length(list));
}

static void on_chained(GstTracer *self, guint64 ts, GstPad *pad, GstFlowReturn result)
{
	struct watched *w = watched_by(pad);

	(void)self, (void)ts;
	if (!w)
		return;
	pem_stream_go_on(w->stream, PEM_STREAM_PUSHES,
			 !w->is_silent || result == GST_FLOW_FLUSHING);
	if (result == GST_FLOW_OK)
		pem_stream_pass(w->stream, PEM_STREAM_PUSHES, w->items);
	else {
		pem_stream_leave(w->stream, PEM_STREAM_PUSHES);
		named_for = pops_from;
	}
}

/* --- the consumer: a source pad pushes --- */

/* Buffers in the queue. Those that are counted besides were dropped by a flush, or by a leak. */
static guint level_of(GstPad *pad, struct watched *w)
{
	GstElement *element = gst_pad_get_parent_element(pad);
	gboolean is_many = element && !strcmp(G_OBJECT_TYPE_NAME(element), "GstMultiQueue");
	guint64 counted = pem_stream_queued(w->stream);
	guint level = G_MAXUINT;

	if (element)
		g_object_get(is_many ? (gpointer)pad : (gpointer)element, "current-level-buffers",
			     &level, NULL);
	pem_stream_drop(w->stream, counted, level);
	gst_clear_object(&element);
	return level;
}

static void begin_pop(GstPad *pad, struct watched *w, guint items)
{
	int has_waited;

	if (!w)
		return;
	forget_stopped();
	is_in_pop = TRUE;
	pops_from = w->stream->id;
	if (named_for != pops_from)
		name_thread(w, pad);
	has_waited = pem_stream_go_on(w->stream, PEM_STREAM_POPS, 1);
	pem_stream_pass(w->stream, PEM_STREAM_POPS, items);
	w->pops_pushes = TRUE;
	if (has_waited && pem_stream_queued(w->stream))
		level_of(pad, w);
}

static void on_push(GstTracer *self, guint64 ts, GstPad *pad, GstBuffer *buffer)
{
	(void)self, (void)ts, (void)buffer;
	begin_pop(pad, watched_by(pad), 1);
}

static void on_push_list(GstTracer *self, guint64 ts, GstPad *pad, GstBufferList *list)
{
	(void)self, (void)ts;
	begin_pop(pad, watched_by(pad), gst_buffer_list_length(list));
}

/* The consumer goes back to its queue. */
static void end_pop(GstPad *pad, struct watched *w, gboolean is_over)
{
	w->pops_pushes = FALSE;
	is_in_pop = FALSE;
	if (is_over) {
		pem_stream_leave(w->stream, PEM_STREAM_POPS);
		pops_from = named_for = 0;
		return;
	}
	pem_stream_wake(w->stream, PEM_STREAM_POPS);
	if (w->is_silent && !level_of(pad, w))
		pem_stream_wait(w->stream, PEM_STREAM_POPS);
}

static void on_pushed(GstTracer *self, guint64 ts, GstPad *pad, GstFlowReturn result)
{
	struct watched *w = watched_by(pad);

	(void)self, (void)ts;
	if (w)
		end_pop(pad, w, result != GST_FLOW_OK);
}

/* --- events and states --- */

/* The queue of a source pad, if the calling thread is its consumer and not in a push already. */
static struct watched *consumed_by(GstPad *pad)
{
	struct watched *w = GST_PAD_IS_SRC(pad) ? watched_by(pad) : NULL;

	return w && !w->pops_pushes && pem_stream_thread.tid &&
			       PEM_STREAM_LOAD(&w->stream->side[PEM_STREAM_POPS].tid) ==
				       pem_stream_thread.tid
		       ? w
		       : NULL;
}

static void on_event(GstTracer *self, guint64 ts, GstPad *pad, GstEvent *event)
{
	struct watched *w = consumed_by(pad);
	GstPad *peer = NULL;

	(void)self, (void)ts;
	if (w) {
		pem_stream_go_on(w->stream, PEM_STREAM_POPS, 1);
		w->is_last = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
	}
	/* An event that passes a queue is not counted there, and wakes the consumer. */
	if (GST_PAD_IS_SRC(pad) && GST_EVENT_IS_SERIALIZED(event))
		peer = gst_pad_get_peer(pad);
	w = peer ? g_object_get_qdata(G_OBJECT(peer), watched_quark) : NULL;
	if (w && w->stream) {
		pem_stream_wake(w->stream, PEM_STREAM_PUSHES);
		if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) {
			pem_stream_leave(w->stream, PEM_STREAM_PUSHES);
			named_for = pops_from; /* a source's thread may come back as another's */
		}
	}
	gst_clear_object(&peer);
}

static void on_event_done(GstTracer *self, guint64 ts, GstPad *pad, gboolean result)
{
	struct watched *w = consumed_by(pad);

	(void)self, (void)ts, (void)result;
	if (w) {
		end_pop(pad, w, w->is_last);
		w->is_last = FALSE;
	}
}

static gboolean leave_pad(GstElement *element, GstPad *pad, gpointer which)
{
	struct watched *w = g_object_get_qdata(G_OBJECT(pad), watched_quark);

	(void)element;
	if (w && w->stream)
		pem_stream_leave(w->stream, GPOINTER_TO_INT(which));
	return TRUE;
}

/*
 * A queue starts again. The thread that pushed before may have stopped between two buffers. No
 * thread pushes until the queue's pads are active again.
 */
static void on_start(GstTracer *self, guint64 ts, GstElement *element, GstStateChange change)
{
	(void)self, (void)ts;
	if (change == GST_STATE_CHANGE_READY_TO_PAUSED && is_queue(element))
		gst_element_foreach_src_pad(element, leave_pad, GINT_TO_POINTER(PEM_STREAM_PUSHES));
}

/* The tasks of a queue's source pads have ended. Their threads may do other things. */
static void on_state(GstTracer *self, guint64 ts, GstElement *element, GstStateChange change,
		     GstStateChangeReturn result)
{
	(void)self, (void)ts, (void)result;
	if (change != GST_STATE_CHANGE_PAUSED_TO_READY || !is_queue(element))
		return;
	g_atomic_int_inc(&stops);
	gst_element_foreach_src_pad(element, leave_pad, GINT_TO_POINTER(PEM_STREAM_POPS));
}

/* --- the plugin --- */

static void pem_tracer_class_init(PemTracerClass *class)
{
	(void)class;
	watched_quark = g_quark_from_static_string("pem-watched");
}

static void pem_tracer_init(PemTracer *self)
{
	static const struct {
		const char *name;
		GCallback callback;
	} hooks[] = {
		{"pad-chain-pre", G_CALLBACK(on_chain)},
		{"pad-chain-post", G_CALLBACK(on_chained)},
		{"pad-chain-list-pre", G_CALLBACK(on_chain_list)},
		{"pad-chain-list-post", G_CALLBACK(on_chained)},
		{"pad-push-pre", G_CALLBACK(on_push)},
		{"pad-push-post", G_CALLBACK(on_pushed)},
		{"pad-push-list-pre", G_CALLBACK(on_push_list)},
		{"pad-push-list-post", G_CALLBACK(on_pushed)},
		{"pad-push-event-pre", G_CALLBACK(on_event)},
		{"pad-push-event-post", G_CALLBACK(on_event_done)},
		{"element-change-state-pre", G_CALLBACK(on_start)},
		{"element-change-state-post", G_CALLBACK(on_state)},
	};
	size_t i;

	/* A process with such memory and without queues has pipelines of one thread each. */
	pem_stream_show_process();
	for (i = 0; i < G_N_ELEMENTS(hooks); i++)
		gst_tracing_register_hook(GST_TRACER(self), hooks[i].name, hooks[i].callback);
}

static gboolean begin(GstPlugin *plugin)
{
	return gst_tracer_register(plugin, "pem", pem_tracer_get_type());
}

#define PACKAGE "pem"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, pem, "shows the queues of pipelines to pem",
		  begin, PEM_VERSION, "LGPL", "pem", "pem")
