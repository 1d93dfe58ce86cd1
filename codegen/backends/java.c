/* SPDX-License-Identifier: MIT */
/*
 * java.c - a Java class: pem/<provider>/Pem<Provider>.java, which needs jni.c's library
 *
 * Each provider has its own package, because a package can't be spread over several modules. Names
 * of the class itself that a parameter could hide start with '_', because no field's name may.
 *
 *	integers up to 32 bits	int. Its low bits are used, so an unsigned value is passed by its
 *				bits.
 *	64 bits, addresses	long
 *	floats			float, double
 *	strings			String
 *	lists, arrays		byte[], short[], int[], long[], float[], double[]
 *	enums			an enum. Each method exists with int or long, too.
 *	flags			constants
 */
#include "java.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Types that the generated class uses. No class inside it may hide them. */
static const char *const taken[] = {
	"AutoCloseable",     "ByteBuffer",    "ByteOrder", "Deprecated", "Enum",
	"LinkageError",      "MethodHandles", "Object",    "Override",   "Record",
	"SecurityException", "String",        "System",    "VarHandle",  "SuppressWarnings",
};

/* Methods of all classes or of this one. An interval's method can't have such a name. */
static const char *const methods[] = {"clone",  "equals", "finalize",  "getClass", "hashCode",
				      "notify", "wait",   "notifyAll", "problem",  "toString"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Forms of enum parameters. */
enum form { FORM_RAW, FORM_ENUM };

static const char *java_scalar(unsigned type)
{
	static const char *const names[PEM_TYPE_COUNT] = {
		NULL,   "int",   "int",    "int",    "long", "int",  "int", "int",
		"long", "float", "double", "String", NULL,   "long", NULL};

	return names[type];
}

const char *pem_java__element(unsigned type)
{
	static const char *const names[PEM_TYPE_COUNT] = {
		NULL,   "byte",  "short",  "int", "long", "byte", "short", "int",
		"long", "float", "double", NULL,  NULL,   "long", NULL};

	return names[type];
}

const char *pem_java__type(const struct pem_spec_field *field)
{
	static const char *const arrays[] = {"byte[]", "short[]", "int[]",
					     "long[]", "float[]", "double[]"};
	const char *element;
	size_t i;

	if (!field->element_type)
		return java_scalar(field->type);
	element = pem_java__element(field->element_type);
	for (i = 0; strncmp(arrays[i], element, strlen(element)); i++)
		;
	return arrays[i];
}

/*
 * Convert shop_serve to ShopServe. An '_' stays before a character without a capital, so that
 * different names stay different.
 */
char *pem_java__camel(const char *name, int first)
{
	char *out = pem_xrealloc(NULL, strlen(name) + 1, 1);
	size_t n = 0;

	for (; *name; name++) {
		if (*name == '_' && islower((unsigned char)name[1])) {
			first = 1;
			continue;
		}
		out[n++] = first ? (char)toupper((unsigned char)*name) : *name;
		first = 0;
	}
	out[n] = '\0';
	return out;
}

char *pem_java__class(const struct pem_spec *spec)
{
	char *camel = pem_java__camel(spec->provider, 1), *name = pem_xprintf("Pem%s", camel);

	free(camel);
	return name;
}

char *pem_java__package(const struct pem_spec *spec)
{
	return pem_xprintf("%s%s", spec->provider,
			   pem_keyword_language(spec->provider, 1) ? "_" : "");
}

static int is_one_of(const char *name, const char *const *names, size_t count)
{
	size_t i;

	for (i = 0; i < count && strcmp(names[i], name); i++)
		;
	return i < count;
}

/* Is this a type that the class uses, or the class itself? */
static int is_own_type(const struct pem_spec *spec, const char *name)
{
	char *own = pem_java__class(spec);
	int is_own = !strcmp(own, name);

	free(own);
	return is_own || is_one_of(name, taken, COUNT(taken));
}

static char *guard_class(const struct pem_spec_event *begin)
{
	char *stem = pem_interval__name(begin), *camel = pem_java__camel(stem, 1);
	char *name = pem_xprintf("%s%s", camel, is_own_type(begin->spec, camel) ? "_" : "");

	free(stem);
	free(camel);
	return name;
}

static char *guard_method(const struct pem_spec_event *begin)
{
	char *stem = pem_interval__name(begin), *camel = pem_java__camel(stem, 0);
	int is_taken = pem_keyword_language(camel, 1) || is_one_of(camel, methods, COUNT(methods));
	char *name = pem_xprintf("%s%s", camel, is_taken ? "_" : "");

	free(stem);
	free(camel);
	return name;
}

static int is_taken(const struct pem_spec *spec, const char *name)
{
	int taken_name = is_own_type(spec, name);
	char *other;
	size_t i;

	for (i = 0; i < spec->event_count; i++) {
		if (!pem_interval__end(&spec->events[i]))
			continue;
		other = guard_class(&spec->events[i]);
		taken_name |= !strcmp(other, name);
		free(other);
	}
	return taken_name;
}

/* The class of an enum or flags. The caller frees it. */
static char *labels_class(const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	char *name = pem_java__camel(labels->name, 1), *longer;

	while (is_taken(spec, name)) {
		longer = pem_xprintf("%s_", name);
		free(name);
		name = longer;
	}
	return name;
}

/* Is a field with these labels wider than an int? */
static int needs_long(const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	return pem_type__size(pem_labels__type(spec, labels)) == 8;
}

/* --- documentation: only ASCII, and no markup of Javadoc --- */

static void put_doc(FILE *f, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned c, more;

	while (*p) {
		c = *p++;
		more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
		c &= more ? 0x3fu >> more : 0xffu;
		for (; more && *p; more--)
			c = c << 6 | (*p++ & 0x3fu);
		if (c < 0x20 || c > 0x7e || strchr("<>&\\@*{}", (int)c))
			fprintf(f, "&#%u;", c);
		else
			fputc((int)c, f);
	}
}

static void put_field_doc(FILE *f, const struct pem_spec_field *field)
{
	fprintf(f, "%s", pem_word__type(field->type));
	if (field->element_type)
		fprintf(f, " of %s", pem_word__type(field->element_type));
	if (field->type == PEM_TYPE_LIST)
		fprintf(f, ", at most %u", field->max_count);
	else if (field->type == PEM_TYPE_ARRAY)
		fprintf(f, ", %u of them", field->max_count);
	else if (field->type == PEM_TYPE_STRING)
		fprintf(f, ", at most %u bytes of UTF-8", field->max_count - 1);
	if (field->unit[0]) {
		fprintf(f, ", in ");
		put_doc(f, field->unit);
	}
	if (field->description[0]) {
		fprintf(f, ": ");
		put_doc(f, field->description);
	}
	fprintf(f, "\n");
}

static void put_event_doc(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	fprintf(f, "\t/**\n\t * %s: ", event->name);
	put_doc(f, event->description);
	fprintf(f, "\n");
	for (i = 0; i < event->field_count; i++) {
		fprintf(f, "\t * @param %s ", event->fields[i].c_name);
		put_field_doc(f, &event->fields[i]);
	}
	if (event->since[0])
		fprintf(f, "\t * @since %s\n", event->since);
	if (event->deprecated[0]) {
		fprintf(f, "\t * @deprecated ");
		put_doc(f, event->deprecated);
		fprintf(f, "\n");
	}
	fprintf(f, "\t */\n%s", event->deprecated[0] ? "\t@Deprecated\n" : "");
}

/* --- labels --- */

static void put_label_name(FILE *f, const struct pem_spec_label *label)
{
	char *name = pem_upper_snake(label->name);

	fputs(name, f);
	free(name);
}

static void put_value(FILE *f, uint64_t value, int is_long)
{
	if (is_long)
		fprintf(f, "0x%llxL", (unsigned long long)value);
	else
		fprintf(f, "0x%x", (unsigned)value);
}

static void put_labels(FILE *f, const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	const char *type = needs_long(spec, labels) ? "long" : "int";
	char *name = labels_class(spec, labels);
	int is_enum = labels->kind == PEM_LABELS_ENUM;
	size_t i;

	fprintf(f, "\n\t/** ");
	put_doc(f, labels->description[0] ? labels->description : labels->name);
	fprintf(f,
		is_enum ? " */\n\tpublic enum %s {\n" : " */\n\tpublic static final class %s {\n",
		name);
	for (i = 0; i < labels->count; i++) {
		fprintf(f, "\t\t/** ");
		put_doc(f, labels->labels[i].description[0] ? labels->labels[i].description
							    : labels->labels[i].name);
		fprintf(f, " */\n\t\t");
		if (!is_enum)
			fprintf(f, "public static final %s ", type);
		put_label_name(f, &labels->labels[i]);
		fprintf(f, is_enum ? "(" : " = ");
		put_value(f, labels->labels[i].value, type[0] == 'l');
		fprintf(f, !is_enum ? ";\n" : i + 1 < labels->count ? "),\n" : ");\n");
	}
	if (is_enum)
		fprintf(f,
			"\n\t\t/** what is recorded */\n\t\tpublic final %1$s value;\n\n"
			"\t\t%2$s(%1$s value) {\n\t\t\tthis.value = value;\n\t\t}\n",
			type, name);
	else
		fprintf(f, "\n\t\tprivate %s() {\n\t\t}\n", name);
	fprintf(f, "\t}\n");
	free(name);
}

static int is_enum_field(const struct pem_spec_field *field)
{
	return field->labels && field->labels->kind == PEM_LABELS_ENUM;
}

static int has_enum(const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (is_enum_field(&event->fields[i]))
			return 1;
	}
	return 0;
}

/* --- events --- */

static void put_parameters(FILE *f, const struct pem_spec_event *event, enum form form)
{
	const struct pem_spec_field *field;
	char *type;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		type = form == FORM_ENUM && is_enum_field(field)
			       ? labels_class(event->spec, field->labels)
			       : pem_xstrdup(pem_java__type(field));
		fprintf(f, "%s%s %s", i ? ", " : "", type, field->c_name);
		free(type);
	}
}

/* Print the parameters as int and long, from both forms. */
static void put_arguments(FILE *f, const struct pem_spec_event *event, enum form form)
{
	const struct pem_spec_field *field;
	const char *cast;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		fprintf(f, "%s", i ? ", " : "");
		cast = form == FORM_ENUM && is_enum_field(field) &&
				       needs_long(event->spec, field->labels) &&
				       pem_type__size(field->type) < 8
			       ? "(int) "
			       : "";
		if (form == FORM_ENUM && is_enum_field(field))
			fprintf(f, "%s == null ? 0 : %s%s.value", field->c_name, cast,
				field->c_name);
		else
			fprintf(f, "%s", field->c_name);
	}
}

static void put_enabled(FILE *f, const struct pem_spec_event *event)
{
	char *camel = pem_java__camel(event->c_name, 1);
	unsigned word = event->stub_index & ~3u, byte = event->stub_index & 3u;

	fprintf(f,
		"\n\t/**\n\t * Does anybody want %s? For those who must do work to know its "
		"fields.\n"
		"\t * @return whether it is wanted\n\t */\n"
		"\tpublic static boolean enabled%s() {\n"
		"\t\treturn ((int) _WORDS.getOpaque(_ENABLE, %u) & 0x%x) != 0;\n\t}\n",
		event->name, camel, word, 0xffu << 8 * byte);
	free(camel);
}

static void put_notify(FILE *f, const struct pem_spec_event *event, enum form form)
{
	char *camel = pem_java__camel(event->c_name, 1);

	fprintf(f, "\n");
	put_event_doc(f, event);
	fprintf(f, "\tpublic static void notify%s(", camel);
	put_parameters(f, event, form);
	fprintf(f, ") {\n\t\tif (enabled%s())\n\t\t\t_%s(", camel, event->c_name);
	put_arguments(f, event, form);
	fprintf(f, ");\n\t}\n");
	free(camel);
}

static void put_event(FILE *f, const struct pem_spec_event *event)
{
	put_enabled(f, event);
	put_notify(f, event, FORM_RAW);
	if (has_enum(event))
		put_notify(f, event, FORM_ENUM);
	fprintf(f, "\n\tprivate static native void _%s(", event->c_name);
	put_parameters(f, event, FORM_RAW);
	fprintf(f, ");\n");
}

/* --- intervals --- */

static void put_guard_class(FILE *f, const struct pem_spec_event *begin,
			    const struct pem_spec_event *end, const char *name)
{
	char *camel_begin = pem_java__camel(begin->c_name, 1);
	char *camel_end = pem_java__camel(end->c_name, 1);
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "\n\t/** From %s to %s. */\n", begin->name, end->name);
	fprintf(f, "\tpublic static final class %s implements AutoCloseable {\n", name);
	for (i = 0; i < end->field_count; i++) {
		field = &end->fields[i];
		if (pem_spec_event__field(begin, field->c_name)) {
			fprintf(f, "\t\tprivate final %s %s;\n", pem_java__type(field),
				field->c_name);
			continue;
		}
		fprintf(f, "\t\t/** to be set before the end: ");
		put_field_doc(f, field);
		fprintf(f, "\t\t */\n\t\tpublic %s %s;\n", pem_java__type(field), field->c_name);
	}
	fprintf(f, "%s\t\tprivate %s(", end->field_count ? "\n" : "", name);
	put_parameters(f, begin, FORM_RAW);
	fprintf(f, ") {\n");
	for (i = 0; i < end->field_count; i++) {
		field = &end->fields[i];
		if (pem_spec_event__field(begin, field->c_name))
			fprintf(f, "\t\t\tthis.%1$s = %1$s;\n", field->c_name);
	}
	fprintf(f, "\t\t\tnotify%s(", camel_begin);
	put_arguments(f, begin, FORM_RAW);
	fprintf(f, ");\n\t\t}\n\n\t\t@Override\n\t\tpublic void close() {\n\t\t\tnotify%s(",
		camel_end);
	put_arguments(f, end, FORM_RAW);
	fprintf(f, ");\n\t\t}\n\t}\n");
	free(camel_begin);
	free(camel_end);
}

static void put_guard(FILE *f, const struct pem_spec_event *begin, enum form form)
{
	char *name = guard_class(begin), *method = guard_method(begin);

	fprintf(f, "\n");
	put_event_doc(f, begin);
	fprintf(f, "\tpublic static %s %s(", name, method);
	put_parameters(f, begin, form);
	fprintf(f, ") {\n\t\treturn new %s(", name);
	put_arguments(f, begin, form);
	fprintf(f, ");\n\t}\n");
	free(name);
	free(method);
}

static void put_interval(FILE *f, const struct pem_spec_event *begin)
{
	const struct pem_spec_event *end = pem_interval__end(begin);
	char *name;

	if (!end)
		return;
	name = guard_class(begin);
	put_guard_class(f, begin, end, name);
	put_guard(f, begin, FORM_RAW);
	if (has_enum(begin))
		put_guard(f, begin, FORM_ENUM);
	free(name);
}

/* --- the class --- */

static const char imports[] = "import java.lang.invoke.MethodHandles;\n"
			      "import java.lang.invoke.VarHandle;\n"
			      "import java.nio.ByteBuffer;\n"
			      "import java.nio.ByteOrder;\n\n";

static const char class_doc[] =
	" *\n"
	" * <p>While nobody records, a method is a load, a test and a branch; then it makes one "
	"native call, which writes\n"
	" * the record. No method throws, blocks or allocates. Any thread may call any of them. A "
	"record carries the\n"
	" * thread that runs the caller: of a virtual thread its carrier, so intervals that a "
	"virtual thread sleeps in\n"
	" * need a field of role key and the scope process to find their end.\n"
	" *\n"
	" * <p>An int stands for every integer of up to 32 bits, a long for one of 64: their low "
	"bits are recorded, so the\n"
	" * upper half of an unsigned type is handed over as a negative number of the same bits. A "
	"null is an empty\n"
	" * string or list, zeros, or the enum's 0. What exceeds its place is cut off, text never "
	"inside a character; it\n"
	" * ends before a \\0. Half a surrogate pair becomes a question mark.\n"
	" *\n"
	" * <p>It needs lib%s.so in {@code java.library.path}; see {@link #problem}.\n"
	" */\n";

static const char attach[] =
	"\t/* The bytes that say what is wanted: libpem lays the recorders' page over them. */\n"
	"\tprivate static final ByteBuffer _ENABLE;\n"
	"\t/* Opaque: a loop must see a change, and needs no order. */\n"
	"\tprivate static final VarHandle _WORDS =\n"
	"\t\tMethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);\n"
	"\tprivate static final String _PROBLEM;\n\n"
	"\tstatic {\n"
	"\t\t_PROBLEM = _load();\n"
	"\t\t_ENABLE = _PROBLEM == null ? _enable() : ByteBuffer.allocateDirect(%1$u);\n"
	"\t}\n\n"
	"\tprivate %2$s() {\n\t}\n\n"
	"\t@SuppressWarnings(\"restricted\")\n"
	"\tprivate static String _load() {\n"
	"\t\ttry {\n"
	"\t\t\tSystem.loadLibrary(\"%3$s\");\n"
	"\t\t\treturn null;\n"
	"\t\t} catch (LinkageError | SecurityException e) {\n"
	"\t\t\treturn \"lib%3$s.so can't be loaded: \" + e.getMessage()\n"
	"\t\t\t\t+ \"; name its folder: java -Djava.library.path=DIR\";\n"
	"\t\t}\n"
	"\t}\n\n"
	"\tprivate static native ByteBuffer _enable();\n\n"
	"\tprivate static native boolean _registered();\n\n"
	"\t/**\n"
	"\t * Why events can't be recorded.\n"
	"\t * @return a sentence: the native library is missing, or pem is; null: they can\n"
	"\t */\n"
	"\tpublic static String problem() {\n"
	"\t\tif (_PROBLEM != null)\n"
	"\t\t\treturn _PROBLEM;\n"
	"\t\treturn _registered() ? null\n"
	"\t\t\t: \"libpem is not in this process: run it under 'pem record'\";\n"
	"\t}\n";

static void put_class(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	char *name = pem_java__class(spec), *package = pem_java__package(spec);
	char *library = pem_xprintf("pem_%s_java", spec->provider);
	size_t i;

	pem_banner(f, set, spec);
	fprintf(f, "package pem.%s;\n\n%s/**\n * ", package, imports);
	put_doc(f, spec->description[0] ? spec->description : spec->provider);
	fprintf(f, "\n");
	fprintf(f, class_doc, library);
	fprintf(f, "public final class %s {\n", name);
	fprintf(f, attach, PEM_EVENT_CAPACITY(spec->stub_count), name, library);
	for (i = 0; i < spec->labels_count; i++)
		put_labels(f, spec, &spec->labels[i]);
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_event(f, &spec->events[i]);
	}
	for (i = 0; i < spec->event_count; i++)
		put_interval(f, &spec->events[i]);
	fprintf(f, "}\n");
	free(name);
	free(package);
	free(library);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	char *name, *package, *path;
	size_t i;

	for (i = 0; i < set->count; i++) {
		if (!set->specs[i].stub_count)
			continue;
		path = pem_xprintf("%s.h", set->specs[i].provider);
		pem_put_c_header(pem_output__file(out, path), set, &set->specs[i]);
		free(path);
		name = pem_java__class(&set->specs[i]);
		package = pem_java__package(&set->specs[i]);
		path = pem_xprintf("pem/%s/%s.java", package, name);
		put_class(pem_output__file(out, path), set, &set->specs[i]);
		free(path);
		path = pem_xprintf("%s_jni.c", set->specs[i].provider);
		pem_java__put_jni(pem_output__file(out, path), set, &set->specs[i]);
		free(path);
		free(name);
		free(package);
	}
}

const struct pem_backend pem_backend_java = {
	.name = "java",
	.description = "pem/PROVIDER/PemPROVIDER.java, and PROVIDER_jni.c with PROVIDER.h for its "
		       "native library",
	.emit = emit,
};
