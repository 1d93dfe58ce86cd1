// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * jvm.c - libpem-jvm.so: events of spec/app/runtime.xml, from a Java virtual machine's tools
 * interface (JVMTI)
 *
 * The option -agentpath:LIBDIR/libpem-jvm.so loads it. Some events slow a virtual machine down as
 * soon as they can be requested. So the agent requests only events that a session wants when the
 * machine starts. With the option 'all' (-agentpath:...=all) it requests all, for recorders that
 * come later.
 *
 * Not here: probes of Java programs (probe.c); sizes of the heap, which JVMTI does not report;
 * entry and exit of methods, because reporting one costs a hundred times as much as the call.
 */
#include <jvmti.h>

#include "stubs/runtime.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 256u

static jvmtiEnv *vm; /* this agent's environment, until the process ends */

/* --- names --- */

static void give_back(void *memory)
{
	if (memory)
		(*vm)->Deallocate(vm, memory);
}

/* Write a type's name: "Ljava/lang/String;" as java.lang.String, other types unchanged. */
static void write_type(char *to, const char *signature)
{
	size_t length;
	char *c;

	snprintf(to, NAME_BYTES, "%s", signature + (*signature == 'L'));
	length = strlen(to);
	if (*signature == 'L' && length && to[length - 1] == ';')
		to[length - 1] = 0;
	for (c = to; *c; c++)
		if (*c == '/')
			*c = '.';
}

static void name_class(jclass type, char *to)
{
	char *signature = NULL;

	to[0] = 0;
	if (!type || (*vm)->GetClassSignature(vm, type, &signature, NULL))
		return;
	write_type(to, signature);
	give_back(signature);
}

static void name_object(JNIEnv *jni, jobject object, char *to)
{
	jclass type = object ? (*jni)->GetObjectClass(jni, object) : NULL;

	name_class(type, to);
	if (type)
		(*jni)->DeleteLocalRef(jni, type);
}

static void name_method(jmethodID method, char *to)
{
	char type[NAME_BYTES], *name = NULL;
	jclass holder;

	to[0] = 0;
	if (!method || (*vm)->GetMethodName(vm, method, &name, NULL, NULL))
		return;
	type[0] = 0;
	if (!(*vm)->GetMethodDeclaringClass(vm, method, &holder))
		name_class(holder, type);
	snprintf(to, NAME_BYTES, "%.190s.%.60s", type, name);
	give_back(name);
}

static uint32_t identity(jobject object)
{
	jint hash = 0;

	(*vm)->GetObjectHashCode(vm, object, &hash);
	return (uint32_t)hash;
}

/* --- the machine and its threads --- */

static void JNICALL on_init(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	char *version = NULL;

	(void)env, (void)jni, (void)thread;
	(*vm)->GetSystemProperty(vm, "java.vm.version", &version);
	pem_notify_runtime_start(version);
	give_back(version);
}

static void JNICALL on_death(jvmtiEnv *env, JNIEnv *jni)
{
	(void)env, (void)jni;
	pem_notify_runtime_stop();
}

static void note_thread(jthread thread, void (*notify)(const char *name))
{
	jvmtiThreadInfo info;

	memset(&info, 0, sizeof(info));
	(*vm)->GetThreadInfo(vm, thread, &info);
	notify(info.name);
	give_back(info.name);
}

static void JNICALL on_thread_start(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	(void)env, (void)jni;
	if (pem_enabled_runtime_thread_start())
		note_thread(thread, pem_notify_runtime_thread_start);
}

static void JNICALL on_thread_end(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	(void)env, (void)jni;
	if (pem_enabled_runtime_thread_end())
		note_thread(thread, pem_notify_runtime_thread_end);
}

/*
 * --- the collector: all threads stand still, and neither Java nor its objects may be touched ---
 */

static uint32_t pauses;

static void JNICALL on_pause_begin(jvmtiEnv *env)
{
	(void)env;
	pem_notify_collector_pause_begin(++pauses);
}

static void JNICALL on_pause_end(jvmtiEnv *env)
{
	(void)env;
	pem_notify_collector_pause_end(pauses);
}

static void JNICALL on_sample(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object,
			      jclass type, jlong size)
{
	char name[NAME_BYTES];

	(void)env, (void)jni, (void)thread, (void)object;
	if (!pem_enabled_collector_object_sample())
		return;
	name_class(type, name);
	pem_notify_collector_object_sample((uint64_t)size, name);
}

/* --- code and classes --- */

static void JNICALL on_code_load(jvmtiEnv *env, jmethodID method, jint size, const void *address,
				 jint map_length, const jvmtiAddrLocationMap *map, const void *info)
{
	char name[NAME_BYTES];

	(void)env, (void)map_length, (void)map, (void)info;
	if (!pem_enabled_jit_code_load())
		return;
	name_method(method, name);
	pem_notify_jit_code_load((uintptr_t)address, (uint64_t)size, PEM_RUNTIME_TIER_UNKNOWN,
				 name);
}

static void JNICALL on_code_unload(jvmtiEnv *env, jmethodID method, const void *address)
{
	(void)env, (void)method;
	pem_notify_jit_code_unload((uintptr_t)address);
}

static void JNICALL on_stub_load(jvmtiEnv *env, const char *name, const void *address, jint size)
{
	(void)env;
	pem_notify_jit_code_load((uintptr_t)address, (uint64_t)size, PEM_RUNTIME_TIER_STUB, name);
}

static void JNICALL on_class_prepare(jvmtiEnv *env, JNIEnv *jni, jthread thread, jclass type)
{
	char name[NAME_BYTES];

	(void)env, (void)jni, (void)thread;
	if (!pem_enabled_runtime_class_prepare())
		return;
	name_class(type, name);
	pem_notify_runtime_class_prepare(name);
}

/* --- exceptions and monitors --- */

static void JNICALL on_throw(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method,
			     jlocation location, jobject exception, jmethodID catcher,
			     jlocation catch_location)
{
	char type[NAME_BYTES], name[NAME_BYTES];

	(void)env, (void)thread, (void)location, (void)catch_location;
	if (!pem_enabled_runtime_exception_throw())
		return;
	name_object(jni, exception, type);
	name_method(method, name);
	pem_notify_runtime_exception_throw(catcher != NULL, type, name);
}

static void JNICALL on_catch(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method,
			     jlocation location, jobject exception)
{
	char type[NAME_BYTES], name[NAME_BYTES];

	(void)env, (void)thread, (void)location;
	if (!pem_enabled_runtime_exception_catch())
		return;
	name_object(jni, exception, type);
	name_method(method, name);
	pem_notify_runtime_exception_catch(type, name);
}

static void JNICALL on_enter_begin(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object)
{
	char type[NAME_BYTES];

	(void)env, (void)thread;
	if (!pem_enabled_runtime_monitor_enter_begin())
		return;
	name_object(jni, object, type);
	pem_notify_runtime_monitor_enter_begin(identity(object), type);
}

static void JNICALL on_enter_end(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object)
{
	(void)env, (void)jni, (void)thread;
	if (pem_enabled_runtime_monitor_enter_end())
		pem_notify_runtime_monitor_enter_end(identity(object));
}

static void JNICALL on_wait_begin(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object,
				  jlong timeout)
{
	char type[NAME_BYTES];

	(void)env, (void)thread;
	if (!pem_enabled_runtime_monitor_wait_begin())
		return;
	name_object(jni, object, type);
	pem_notify_runtime_monitor_wait_begin(timeout, identity(object), type);
}

static void JNICALL on_wait_end(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject object,
				jboolean is_timed_out)
{
	(void)env, (void)jni, (void)thread;
	if (pem_enabled_runtime_monitor_wait_end())
		pem_notify_runtime_monitor_wait_end(identity(object), is_timed_out != 0);
}

/* --- beginning --- */

static const jvmtiEventCallbacks callbacks = {
	.VMInit = on_init,
	.VMDeath = on_death,
	.ThreadStart = on_thread_start,
	.ThreadEnd = on_thread_end,
	.ClassPrepare = on_class_prepare,
	.Exception = on_throw,
	.ExceptionCatch = on_catch,
	.CompiledMethodLoad = on_code_load,
	.CompiledMethodUnload = on_code_unload,
	.DynamicCodeGenerated = on_stub_load,
	.MonitorWait = on_wait_begin,
	.MonitorWaited = on_wait_end,
	.MonitorContendedEnter = on_enter_begin,
	.MonitorContendedEntered = on_enter_end,
	.GarbageCollectionStart = on_pause_begin,
	.GarbageCollectionFinish = on_pause_end,
	.SampledObjectAlloc = on_sample,
};

/* The kinds of events to request. */
struct wanted {
	int pauses, code, exceptions, monitors, samples, classes, threads;
};

static struct wanted check(int all)
{
	return (struct wanted){
		.pauses = all || pem_enabled_collector_pause_begin() ||
			  pem_enabled_collector_pause_end(),
		.code = all || pem_enabled_jit_code_load() || pem_enabled_jit_code_unload(),
		.exceptions = all || pem_enabled_runtime_exception_throw() ||
			      pem_enabled_runtime_exception_catch(),
		.monitors = all || pem_enabled_runtime_monitor_enter_begin() ||
			    pem_enabled_runtime_monitor_enter_end() ||
			    pem_enabled_runtime_monitor_wait_begin() ||
			    pem_enabled_runtime_monitor_wait_end(),
		.samples = all || pem_enabled_collector_object_sample(),
		.classes = all || pem_enabled_runtime_class_prepare(),
		.threads = all || pem_enabled_runtime_thread_start() ||
			   pem_enabled_runtime_thread_end(),
	};
}

static void add_capabilities(const struct wanted *w)
{
	jvmtiCapabilities can, wanted;

	memset(&can, 0, sizeof(can));
	memset(&wanted, 0, sizeof(wanted));
	(*vm)->GetPotentialCapabilities(vm, &can);
	wanted.can_generate_garbage_collection_events =
		w->pauses && can.can_generate_garbage_collection_events;
	wanted.can_generate_compiled_method_load_events =
		w->code && can.can_generate_compiled_method_load_events;
	wanted.can_generate_exception_events = w->exceptions && can.can_generate_exception_events;
	wanted.can_generate_monitor_events = w->monitors && can.can_generate_monitor_events;
	wanted.can_generate_sampled_object_alloc_events =
		w->samples && can.can_generate_sampled_object_alloc_events;
	(*vm)->AddCapabilities(vm, &wanted);
}

/* Request an event. A machine without the capability refuses it: then the event is never raised. */
static void ask(int is_wanted, jvmtiEvent event)
{
	if (is_wanted)
		(*vm)->SetEventNotificationMode(vm, JVMTI_ENABLE, event, NULL);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *java, char *options, void *reserved)
{
	struct wanted w;

	(void)reserved;
	/* without libpem no session could ever want an event */
	if (!pem_provider_runtime.registered)
		return 0;
	if ((*java)->GetEnv(java, (void **)&vm, JVMTI_VERSION_11) &&
	    (*java)->GetEnv(java, (void **)&vm, JVMTI_VERSION_1_2))
		return 0;
	w = check(options && !strcmp(options, "all"));
	add_capabilities(&w);
	(*vm)->SetEventCallbacks(vm, &callbacks, sizeof(callbacks));
	ask(1, JVMTI_EVENT_VM_INIT);
	ask(1, JVMTI_EVENT_VM_DEATH);
	ask(w.threads, JVMTI_EVENT_THREAD_START);
	ask(w.threads, JVMTI_EVENT_THREAD_END);
	ask(w.classes, JVMTI_EVENT_CLASS_PREPARE);
	ask(w.exceptions, JVMTI_EVENT_EXCEPTION);
	ask(w.exceptions, JVMTI_EVENT_EXCEPTION_CATCH);
	ask(w.code, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	ask(w.code, JVMTI_EVENT_COMPILED_METHOD_UNLOAD);
	ask(w.code, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	ask(w.monitors, JVMTI_EVENT_MONITOR_WAIT);
	ask(w.monitors, JVMTI_EVENT_MONITOR_WAITED);
	ask(w.monitors, JVMTI_EVENT_MONITOR_CONTENDED_ENTER);
	ask(w.monitors, JVMTI_EVENT_MONITOR_CONTENDED_ENTERED);
	ask(w.pauses, JVMTI_EVENT_GARBAGE_COLLECTION_START);
	ask(w.pauses, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH);
	ask(w.samples, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
	return 0;
}
