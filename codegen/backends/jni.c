/* SPDX-License-Identifier: MIT */
/*
 * jni.c - the native library of a Java class: PROVIDER_jni.c, a part of backend 'java'
 *
 * The library copies Java's strings, lists and arrays to the stack, within the limits of the spec,
 * and calls the C stub. Parameters start with f_, so that they differ from the names of JNI.
 */
#include "java.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "#include \"%s.h\"\n"
			   "\n"
			   "#include <jni.h>\n\n"
			   "/* Who calls a deprecated event is told by javac. */\n"
			   "#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\"\n\n";

static const char text_helper[] =
	"/* A string as UTF-8 in text, of at most room bytes with its NUL; units: room for room - "
	"1 of UTF-16. */\n"
	"static const char *get_text(JNIEnv *env, jstring string, jchar *units, char *text, "
	"uint32_t room)\n"
	"{\n"
	"\tuint32_t total, length, i, c, bytes, n = 0;\n"
	"\n"
	"\tif (!string)\n"
	"\t\treturn \"\";\n"
	"\ttotal = (uint32_t)(*env)->GetStringLength(env, string);\n"
	"\tlength = total < room - 1 ? total : room - 1;\n"
	"\t(*env)->GetStringRegion(env, string, 0, (jsize)length, units);\n"
	"\tfor (i = 0; i < length && units[i]; i++) {\n"
	"\t\tc = units[i];\n"
	"\t\tif ((c & 0xfc00u) == 0xd800u && i + 1 < length && (units[i + 1] & 0xfc00u) == "
	"0xdc00u)\n"
	"\t\t\tc = 0x10000u + ((c & 0x3ffu) << 10) + (units[++i] & 0x3ffu);\n"
	"\t\telse if ((c & 0xfc00u) == 0xd800u && i + 1 == length && length < total)\n"
	"\t\t\tbreak; /* its other half lies behind the end */\n"
	"\t\telse if ((c & 0xf800u) == 0xd800u)\n"
	"\t\t\tc = '?';\n"
	"\t\tbytes = c < 0x80u ? 1 : c < 0x800u ? 2 : c < 0x10000u ? 3 : 4;\n"
	"\t\tif (n + bytes > room - 1)\n"
	"\t\t\tbreak;\n"
	"\t\tif (bytes == 1) {\n"
	"\t\t\ttext[n++] = (char)c;\n"
	"\t\t\tcontinue;\n"
	"\t\t}\n"
	"\t\ttext[n++] = (char)(0xf00u >> bytes | c >> 6 * (bytes - 1));\n"
	"\t\twhile (--bytes)\n"
	"\t\t\ttext[n++] = (char)(0x80u | (c >> 6 * (bytes - 1) & 0x3fu));\n"
	"\t}\n"
	"\ttext[n] = 0;\n"
	"\treturn text;\n"
	"}\n\n";

/* For one element type: int, Int. */
static const char list_helper[] =
	"/* The first elements of an array, at most room; how many. */\n"
	"static uint32_t get_%1$ss(JNIEnv *env, j%1$sArray array, void *to, uint32_t room)\n"
	"{\n"
	"\tuint32_t count = array ? (uint32_t)(*env)->GetArrayLength(env, array) : 0;\n"
	"\n"
	"\tif (count > room)\n"
	"\t\tcount = room;\n"
	"\tif (count)\n"
	"\t\t(*env)->Get%2$sArrayRegion(env, array, 0, (jsize)count, (j%1$s *)to);\n"
	"\treturn count;\n"
	"}\n\n";

static const char page_calls[] =
	"static jobject JNICALL get_enable(JNIEnv *env, jclass type)\n"
	"{\n"
	"\t(void)type;\n"
	"\treturn (*env)->NewDirectByteBuffer(env, pem_page_%1$s.enable, "
	"sizeof(pem_page_%1$s.enable));\n"
	"}\n\n"
	"static jboolean JNICALL get_registered(JNIEnv *env, jclass type)\n"
	"{\n"
	"\t(void)env, (void)type;\n"
	"\treturn pem_provider_%1$s.registered != 0;\n"
	"}\n\n";

static const char on_load[] =
	"JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)\n"
	"{\n"
	"\tvoid *env = 0;\n"
	"\tjclass type;\n"
	"\n"
	"\t(void)reserved;\n"
	"\tif ((*vm)->GetEnv(vm, &env, JNI_VERSION_1_8))\n"
	"\t\treturn JNI_ERR;\n"
	"\ttype = (*(JNIEnv *)env)->FindClass((JNIEnv *)env, \"pem/%1$s/%2$s\");\n"
	"\tif (!type || (*(JNIEnv *)env)->RegisterNatives((JNIEnv *)env, type, methods,\n"
	"\t\t\t\t\t\t\t(jint)(sizeof(methods) / sizeof(methods[0]))))\n"
	"\t\treturn JNI_ERR;\n"
	"\treturn JNI_VERSION_1_8;\n"
	"}\n";

/*
 * Does any stub have a list or array of elements with this Java type, or if element is NULL, a
 * string?
 */
static int has_elements(const struct pem_spec *spec, const char *element)
{
	const struct pem_spec_field *field;
	size_t i, k;

	for (i = 0; i < spec->event_count; i++) {
		for (k = 0; pem_is_stub(&spec->events[i]) && k < spec->events[i].field_count; k++) {
			field = &spec->events[i].fields[k];
			if (element ? field->element_type &&
					      !strcmp(pem_java__element(field->element_type),
						      element)
				    : field->type == PEM_TYPE_STRING)
				return 1;
		}
	}
	return 0;
}

static void put_helpers(FILE *f, const struct pem_spec *spec)
{
	static const char *const elements[][2] = {{"byte", "Byte"},   {"short", "Short"},
						  {"int", "Int"},     {"long", "Long"},
						  {"float", "Float"}, {"double", "Double"}};
	size_t i;

	if (has_elements(spec, NULL))
		fputs(text_helper, f);
	for (i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
		if (has_elements(spec, elements[i][0]))
			fprintf(f, list_helper, elements[i][0], elements[i][1]);
	}
}

static void put_jni_type(FILE *f, const struct pem_spec_field *field)
{
	if (field->element_type)
		fprintf(f, "j%sArray", pem_java__element(field->element_type));
	else
		fprintf(f, "j%s",
			field->type == PEM_TYPE_STRING ? "string" : pem_java__type(field));
}

static void put_locals(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	int any = 0;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "\tjchar units%zu[%u];\n\tchar text%zu[%u];\n", i,
				field->max_count - 1, i, field->max_count);
		else if (field->element_type)
			fprintf(f, "\t%s values%zu[%u]%s;\n", pem_type__c(field->element_type), i,
				field->max_count, field->type == PEM_TYPE_ARRAY ? " = {0}" : "");
		if (field->type == PEM_TYPE_LIST)
			fprintf(f, "\tuint32_t count%zu = get_%ss(env, f_%s, values%zu, %u);\n", i,
				pem_java__element(field->element_type), field->c_name, i,
				field->max_count);
		any |= field->type == PEM_TYPE_STRING || field->element_type;
	}
	if (any)
		fprintf(f, "\n");
	fprintf(f, "\t(void)env, (void)type;\n");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "\tget_%ss(env, f_%s, values%zu, %u);\n",
				pem_java__element(field->element_type), field->c_name, i,
				field->max_count);
	}
}

static void put_call(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "static void JNICALL call_%s(JNIEnv *env, jclass type", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		fprintf(f, ", ");
		put_jni_type(f, &event->fields[i]);
		fprintf(f, " f_%s", event->fields[i].c_name);
	}
	fprintf(f, ")\n{\n");
	put_locals(f, event);
	fprintf(f, "\tpem_notify_%s(", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		fprintf(f, "%s", i ? ", " : "");
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "get_text(env, f_%1$s, units%2$zu, text%2$zu, %3$u)",
				field->c_name, i, field->max_count);
		else if (field->type == PEM_TYPE_LIST)
			fprintf(f, "count%1$zu, values%1$zu", i);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "values%zu", i);
		else
			fprintf(f, "(%s)f_%s", pem_type__c(field->type), field->c_name);
	}
	fprintf(f, ");\n}\n\n");
}

/* Print a signature as the JVM writes types: (JILjava/lang/String;)V */
static void put_signature(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	const char *type;
	size_t i;

	fputc('(', f);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		type = pem_java__type(field);
		if (field->element_type)
			fputc('[', f);
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "Ljava/lang/String;");
		else
			fputc(type[0] == 'l' ? 'J' : toupper((unsigned char)type[0]), f);
	}
	fprintf(f, ")V");
}

static void put_methods(FILE *f, const struct pem_spec *spec)
{
	size_t i;

	fprintf(f, "static const JNINativeMethod methods[] = {\n"
		   "\t{(char *)\"_enable\", (char *)\"()Ljava/nio/ByteBuffer;\", (void "
		   "*)get_enable},\n"
		   "\t{(char *)\"_registered\", (char *)\"()Z\", (void *)get_registered},\n");
	for (i = 0; i < spec->event_count; i++) {
		if (!pem_is_stub(&spec->events[i]))
			continue;
		fprintf(f, "\t{(char *)\"_%s\", (char *)\"", spec->events[i].c_name);
		put_signature(f, &spec->events[i]);
		fprintf(f, "\", (void *)call_%s},\n", spec->events[i].c_name);
	}
	fprintf(f, "};\n\n");
}

void pem_java__put_jni(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	char *name = pem_java__class(spec), *package = pem_java__package(spec);
	size_t i;

	pem_banner(f, set, spec);
	fprintf(f,
		"/*\n * The native library of pem.%s.%s. With JAVA_HOME set:\n *\n"
		" *\tcc -O2 -shared -fPIC -I$JAVA_HOME/include -I$JAVA_HOME/include/linux \\\n"
		" *\t\t%s_jni.c -o libpem_%s_java.so\n"
		" *\tjavac -d classes -sourcepath . PROGRAM.java\n"
		" *\tpem record -- java -Djava.library.path=. -cp classes PROGRAM\n */\n",
		package, name, spec->provider, spec->provider);
	fprintf(f, head, spec->provider);
	put_helpers(f, spec);
	fprintf(f, page_calls, spec->provider);
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_call(f, &spec->events[i]);
	}
	put_methods(f, spec);
	fprintf(f, on_load, package, name);
	free(name);
	free(package);
}
