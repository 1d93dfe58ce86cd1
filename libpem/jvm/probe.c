// SPDX-License-Identifier: LGPL-2.1-or-later
/* probe.c - the native methods of pem/Probe.java (contract: pem/enclosed.h) */
#include <jni.h>

#include <dlfcn.h>
#include <stdint.h>

static void (*enter)(uint32_t by, uint32_t id, uint32_t sc);
static void (*leave)(uint32_t by, uint32_t id);
static int (*set_counter)(uint32_t counter, uint32_t event, uint32_t mask);

static void JNICALL enter0(JNIEnv *jni, jclass type, jint by, jint id, jint sc)
{
	(void)jni;
	(void)type;
	enter((uint32_t)by, (uint32_t)id, (uint32_t)sc);
}

static void JNICALL leave0(JNIEnv *jni, jclass type, jint by, jint id)
{
	(void)jni;
	(void)type;
	leave((uint32_t)by, (uint32_t)id);
}

static jint JNICALL set_counter0(JNIEnv *jni, jclass type, jint counter, jint event, jint mask)
{
	(void)jni;
	(void)type;
	return set_counter((uint32_t)counter, (uint32_t)event, (uint32_t)mask);
}

/*
 * Called by System.load in Probe's initialization. In a process without libpem it fails, and
 * Probe measures nothing.
 */
JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *java, void *reserved)
{
	static const JNINativeMethod methods[] = {
		{(char *)"enter0", (char *)"(III)V", (void *)enter0},
		{(char *)"leave0", (char *)"(II)V", (void *)leave0},
		{(char *)"setCounter0", (char *)"(III)I", (void *)set_counter0},
	};
	JNIEnv *jni;
	jclass type;

	(void)reserved;
	*(void **)&enter = dlsym(RTLD_DEFAULT, "pem_probe__enter");
	*(void **)&leave = dlsym(RTLD_DEFAULT, "pem_probe__leave");
	*(void **)&set_counter = dlsym(RTLD_DEFAULT, "pem_probe__set_counter");
	if (!enter || !leave || !set_counter ||
	    (*java)->GetEnv(java, (void **)&jni, JNI_VERSION_1_6))
		return JNI_ERR;
	type = (*jni)->FindClass(jni, "pem/Probe");
	if (!type ||
	    (*jni)->RegisterNatives(jni, type, methods, sizeof(methods) / sizeof(*methods)))
		return JNI_ERR;
	return JNI_VERSION_1_6;
}
