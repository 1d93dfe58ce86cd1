/* SPDX-License-Identifier: MIT */
/*
 * python.c - a Python module, pem_<provider>.py: only ctypes and the standard library, nothing to
 * compile
 *
 * The module makes in memory what a C stub's object file contains (control page, struct
 * pem_provider), and registers it with libpem. It packs records itself and calls provider->notify.
 * Names that a parameter could hide start with '_', because no field's name may. Text that does not
 * depend on the spec is in python_text.c.
 */
#include "python.h"

#include <stdlib.h>
#include <string.h>

/*
 * The struct module's letter for a type of number. There is no type for Python's bool, whose letter
 * is '?': True and False are packed as the integers 1 and 0. '!' is no letter: a type that is no
 * number can't be packed as one.
 */
static char code_of(unsigned type)
{
	return "!BHIQbhiqfd!!Q!"[type < PEM_TYPE_COUNT ? type : 0];
}

/* --- names --- */

/*
 * What Python 3.9 to 3.14 has without an import, and the module's own names. The module uses some
 * of these builtins. A program that imports everything from the module uses others. So no name of
 * the module hides them.
 */
static const char builtins[] =
	" abs aiter all anext any ArithmeticError ascii AssertionError AttributeError"
	" BaseException BaseExceptionGroup bin BlockingIOError bool breakpoint BrokenPipeError"
	" BufferError bytearray bytes BytesWarning callable ChildProcessError chr classmethod"
	" compile complex ConnectionAbortedError ConnectionError ConnectionRefusedError"
	" ConnectionResetError copyright credits delattr DeprecationWarning dict dir divmod"
	" Ellipsis EncodingWarning enumerate EnvironmentError EOFError eval Exception"
	" ExceptionGroup exec exit FileExistsError FileNotFoundError filter float"
	" FloatingPointError format frozenset FutureWarning GeneratorExit getattr globals"
	" hasattr hash help hex id ImportError ImportWarning IndentationError IndexError input"
	" int InterruptedError IOError IsADirectoryError isinstance issubclass iter"
	" KeyboardInterrupt KeyError len license list locals LookupError map max MemoryError"
	" memoryview min ModuleNotFoundError NameError next NotADirectoryError NotImplemented"
	" NotImplementedError object oct open ord OSError OverflowError"
	" PendingDeprecationWarning PermissionError pow print ProcessLookupError property"
	" PythonFinalizationError quit range RecursionError ReferenceError repr"
	" ResourceWarning reversed round RuntimeError RuntimeWarning set setattr slice sorted"
	" staticmethod StopAsyncIteration StopIteration str sum super SyntaxError"
	" SyntaxWarning SystemError SystemExit TabError TimeoutError tuple type TypeError"
	" UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError"
	" UnicodeTranslateError UnicodeWarning UserWarning ValueError vars Warning"
	" ZeroDivisionError zip"
	" misfits problem annotations ";

/* Append an '_' to a name that Python or the module has, as PEP 8 does. Frees name. */
static char *unlike(char *name)
{
	char *word = pem_xprintf(" %s ", name), *longer = name;

	if (pem_keyword_language(name, 1) || strstr(builtins, word)) {
		longer = pem_xprintf("%s_", name);
		free(name);
	}
	free(word);
	return longer;
}

/* Is this the name of a function that raises an event, or says whether it is wanted? */
static int is_function(const struct pem_spec *spec, const char *name)
{
	size_t i, prefix = !strncmp(name, "notify_", 7) ? 7 : 0;

	if (!strncmp(name, "enabled_", 8))
		prefix = 8;
	for (i = 0; prefix && i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]) && !strcmp(spec->events[i].c_name, name + prefix))
			return 1;
	}
	return 0;
}

/* Return the name of the function that makes an interval's guard. The caller frees it. */
static char *interval_name(const struct pem_spec_event *begin)
{
	char *name = unlike(pem_interval__name(begin)), *longer;

	if (!is_function(begin->spec, name))
		return name;
	longer = pem_xprintf("%s_", name);
	free(name);
	return longer;
}

/* --- text --- */

/* Print the inside of a string between three quotes. */
static void put_doc(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fputc('\\', f);
		fputc((unsigned char)*text < 0x20 ? ' ' : *text, f);
	}
}

static void put_comment(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 ? ' ' : *text, f);
}

/* Print a text as lines of bytes literals. */
static void put_bytes(FILE *f, const char *text)
{
	const unsigned char *p;

	fprintf(f, "    b\"");
	for (p = (const unsigned char *)text; *p; p++) {
		if (*p == '\n')
			fprintf(f, p[1] ? "\\n\"\n    b\"" : "\\n");
		else if (*p == '\t')
			fprintf(f, "\\t");
		else if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < 0x20 || *p > 0x7e)
			fprintf(f, "\\x%02x", *p);
		else
			fputc(*p, f);
	}
	fprintf(f, "\"\n");
}

/* --- labels --- */

static char *labels_class(const struct pem_spec_labels *labels)
{
	return unlike(pem_camel_case(labels->name));
}

static void put_labels(FILE *f, const struct pem_spec_labels *labels)
{
	char *name = labels_class(labels), *label;
	size_t i;

	fprintf(f, "\n\nclass %s(_enum.%s):\n    \"\"\"", name,
		labels->kind == PEM_LABELS_ENUM ? "IntEnum" : "IntFlag");
	put_doc(f, labels->description[0] ? labels->description : labels->name);
	fprintf(f, "\"\"\"\n\n");
	for (i = 0; i < labels->count; i++) {
		label = pem_upper_snake(labels->labels[i].name);
		if (labels->labels[i].is_negative)
			fprintf(f, "    %s = %lld", label, (long long)labels->labels[i].value);
		else
			fprintf(f,
				labels->kind == PEM_LABELS_ENUM ? "    %s = %llu"
								: "    %s = 0x%llx",
				label, (unsigned long long)labels->labels[i].value);
		if (labels->labels[i].description[0]) {
			fprintf(f, "  # ");
			put_comment(f, labels->labels[i].description);
		}
		fprintf(f, "\n");
		free(label);
	}
	free(name);
}

/* --- records --- */

static int is_varying(const struct pem_spec_field *field)
{
	return field->type == PEM_TYPE_STRING || field->type == PEM_TYPE_LIST;
}

/* Print the packer of everything before the tail: struct's letters, x for padding. */
static void put_packer(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "_pack%u = _struct.Struct(\"<II", event->stub_index);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->padding)
			fprintf(f, "%ux", field->padding);
		if (field->type == PEM_TYPE_LIST)
			fputc('I', f);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "%u%c", field->max_count, code_of(field->element_type));
		else if (field->type != PEM_TYPE_STRING)
			fputc(code_of(field->type), f);
	}
	fprintf(f, "\").pack\n");
}

/* Print the type that each value is converted to if it does not fit as it is. */
static void put_kinds(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "_kinds%u = (", event->stub_index);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "\"s\", ");
		else if (field->element_type)
			fprintf(f, "\"%u%c\", ", field->max_count, code_of(field->element_type));
		else
			fprintf(f, "\"%c\", ", code_of(field->type));
	}
	fprintf(f, ")\n");
}

static const char *type_hint(const struct pem_spec_field *field)
{
	if (field->element_type)
		return pem_type__is_float(field->element_type) ? "_Iterable[float] | None"
							       : "_Iterable[int] | None";
	if (field->type == PEM_TYPE_STRING)
		return "str | None";
	return pem_type__is_float(field->type) ? "float" : "int";
}

static void put_names(FILE *f, const struct pem_spec_event *event, int typed)
{
	const struct pem_spec_field *field;
	char *labels;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		fprintf(f, "%s%s", i ? ", " : "", field->c_name);
		if (!typed)
			continue;
		labels = field->labels ? labels_class(field->labels) : NULL;
		fprintf(f, ": %s%s%s", labels ? labels : "", labels ? " | " : "", type_hint(field));
		free(labels);
	}
}

static void put_event_doc(FILE *f, const struct pem_spec_event *event, const char *tabs)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "%s\"\"\"%s: ", tabs, event->name);
	put_doc(f, event->description);
	fprintf(f, "\n");
	if (event->deprecated[0]) {
		fprintf(f, "\n%sDeprecated: ", tabs);
		put_doc(f, event->deprecated);
		fprintf(f, "\n");
	}
	if (event->field_count)
		fprintf(f, "\n");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		fprintf(f, "%s%s: ", tabs, field->c_name);
		if (field->element_type)
			fprintf(f, field->type == PEM_TYPE_LIST ? "at most %u " : "%u of ",
				field->max_count);
		fprintf(f, "%s",
			pem_word__type(field->element_type ? field->element_type : field->type));
		if (field->type == PEM_TYPE_STRING)
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
	fprintf(f, "%s\"\"\"\n", tabs);
}

/* Print the statements, inside try, that leave the record in _r. */
static void put_build(FILE *f, const struct pem_spec_event *event, const char *tabs)
{
	const struct pem_spec_field *field;
	uint32_t size, known_align = event->fixed_bytes & -event->fixed_bytes;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_LIST)
			fprintf(f, "%s_n%zu, _b%zu = _list(%s, %u, \"%c\")\n", tabs, i, i,
				field->c_name, field->max_count, code_of(field->element_type));
	}
	fprintf(f, "%s_r = _pack%u(0, 0x%08x", tabs, event->stub_index, event->id);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_LIST)
			fprintf(f, ", _n%zu", i);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, ", *_array(%s, %u)", field->c_name, field->max_count);
		else if (field->type != PEM_TYPE_STRING)
			fprintf(f, ", %s", field->c_name);
	}
	fprintf(f, ")");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (!is_varying(field))
			continue;
		if (field->type == PEM_TYPE_STRING) {
			fprintf(f, " + _text(%s, %u)", field->c_name, field->max_count - 1);
			known_align = 1;
			continue;
		}
		size = pem_type__size(field->element_type);
		if (size > known_align)
			fprintf(f, "\n%s_r += b\"\\0\" * (-_len(_r) & %u)\n%s_r += ", tabs,
				size - 1, tabs);
		else
			fprintf(f, " + ");
		fprintf(f, "_b%zu", i);
		known_align = size;
	}
	fprintf(f, "\n");
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	unsigned index = event->stub_index;
	size_t i;

	fprintf(f, "\n\n");
	put_packer(f, event);
	put_kinds(f, event);
	fprintf(f,
		"\n\ndef enabled_%s() -> bool:\n"
		"    \"\"\"Does anybody want %s? For those who must do work to know its "
		"fields.\"\"\"\n"
		"    return _enable[%u] != 0\n",
		event->c_name, event->name, index);
	fprintf(f, "\n\ndef notify_%s(", event->c_name);
	put_names(f, event, 1);
	fprintf(f, ") -> None:\n");
	put_event_doc(f, event, "    ");
	fprintf(f, "    if _enable[%u]:\n        try:\n", index);
	/* What can be read once only is kept for a second try. */
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].element_type)
			fprintf(f, "            %1$s = _kept(%1$s, %2$u)\n",
				event->fields[i].c_name, event->fields[i].max_count);
	}
	put_build(f, event, "            ");
	fprintf(f, "        except _Exception:\n            _mend(_notify%u, _kinds%u, (", index,
		index);
	put_names(f, event, 0);
	fprintf(f, "%s))\n        else:\n            _notify(_provider, %u, _r, _len(_r))\n",
		event->field_count == 1 ? "," : "", index);
	/* A field may have the function's name. */
	fprintf(f, "\n\n_notify%u = notify_%s\n", index, event->c_name);
}

/* --- intervals --- */

static const char *zero_of(const struct pem_spec_field *field)
{
	if (field->element_type)
		return "()";
	if (field->type == PEM_TYPE_STRING)
		return "\"\"";
	return pem_type__is_float(field->type) ? "0.0" : "0";
}

static void put_guard_class(FILE *f, const struct pem_spec_event *begin,
			    const struct pem_spec_event *end, const char *name)
{
	size_t i;

	fprintf(f, "\n\nclass _scope_%s:\n    __slots__ = (", name);
	for (i = 0; i < begin->field_count; i++)
		fprintf(f, "\"_%s\", ", begin->fields[i].c_name);
	for (i = 0; i < end->field_count; i++) {
		if (!pem_spec_event__field(begin, end->fields[i].c_name))
			fprintf(f, "\"%s\", ", end->fields[i].c_name);
	}
	fprintf(f, ")\n\n    def __init__(self%s", begin->field_count ? ", " : "");
	put_names(f, begin, 0);
	fprintf(f, "):\n");
	for (i = 0; i < begin->field_count; i++)
		fprintf(f, "        self._%1$s = %1$s\n", begin->fields[i].c_name);
	for (i = 0; i < end->field_count; i++) {
		if (!pem_spec_event__field(begin, end->fields[i].c_name))
			fprintf(f, "        self.%s = %s\n", end->fields[i].c_name,
				zero_of(&end->fields[i]));
	}
	fprintf(f, "%s\n    def __enter__(self):\n        notify_%s(",
		begin->field_count + end->field_count ? "" : "        pass\n", begin->c_name);
	for (i = 0; i < begin->field_count; i++)
		fprintf(f, "%sself._%s", i ? ", " : "", begin->fields[i].c_name);
	fprintf(f, ")\n        return self\n\n    def __exit__(self, *_error):\n        notify_%s(",
		end->c_name);
	for (i = 0; i < end->field_count; i++)
		fprintf(f, "%sself.%s%s", i ? ", " : "",
			pem_spec_event__field(begin, end->fields[i].c_name) ? "_" : "",
			end->fields[i].c_name);
	fprintf(f, ")\n");
}

static void put_interval(FILE *f, const struct pem_spec_event *begin)
{
	const struct pem_spec_event *end = pem_interval__end(begin);
	size_t i, own = 0;
	char *name;

	if (!end)
		return;
	name = interval_name(begin);
	put_guard_class(f, begin, end, name);
	fprintf(f, "\n\ndef %s(", name);
	put_names(f, begin, 1);
	fprintf(f, "):\n    \"\"\"`with` this: from %s to %s.", begin->name, end->name);
	for (i = 0; i < end->field_count; i++) {
		if (pem_spec_event__field(begin, end->fields[i].c_name))
			continue;
		fprintf(f, "%s%s",
			own++ ? ", " : "\n\n    To be set before the end, of what `as` names: ",
			end->fields[i].c_name);
	}
	fprintf(f, "%s\"\"\"\n", own ? "\n    " : "");
	fprintf(f, "    if _enable[%u] or _enable[%u]:\n        return _scope_%s(",
		begin->stub_index, end->stub_index, name);
	put_names(f, begin, 0);
	fprintf(f, ")\n    return _off\n");
	free(name);
}

/* --- the module --- */

static void put_all(FILE *f, const struct pem_spec *spec)
{
	char *name;
	size_t i;

	fprintf(f, "__all__ = [\n    \"problem\", \"misfits\",\n");
	for (i = 0; i < spec->labels_count; i++) {
		name = labels_class(&spec->labels[i]);
		fprintf(f, "    \"%s\",\n", name);
		free(name);
	}
	for (i = 0; i < spec->event_count; i++) {
		if (!pem_is_stub(&spec->events[i]))
			continue;
		fprintf(f, "    \"enabled_%1$s\", \"notify_%1$s\",\n", spec->events[i].c_name);
		if (!pem_interval__end(&spec->events[i]))
			continue;
		name = interval_name(&spec->events[i]);
		fprintf(f, "    \"%s\",\n", name);
		free(name);
	}
	fprintf(f, "]\n");
}

/* Print the model's text in the form that readers get. */
static void put_model(FILE *f, const struct pem_spec *spec)
{
	char *text = NULL;
	size_t bytes = 0, i;
	FILE *model = open_memstream(&text, &bytes);

	if (!model) {
		pem_complain(stderr, "out of memory");
		exit(1);
	}
	fprintf(model, "pem-model\t%d\n", PEM_MODEL_VERSION);
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			pem_put_model(model, &spec->events[i]);
	}
	pem_put_metrics(model, spec);
	fclose(model);
	fprintf(f, "\n_MODEL = (\n");
	put_bytes(f, text);
	fprintf(f, ")\n_IDS = (\n");
	free(text);
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			fprintf(f, "    0x%08x,  # %s\n", spec->events[i].id, spec->events[i].name);
	}
	fprintf(f, ")\n");
}

static void put_module(FILE *f, const struct pem_spec *spec)
{
	size_t i;

	pem_put_line_banner(f, "#", spec);
	fprintf(f, "\"\"\"\npem_%s - ", spec->provider);
	put_doc(f, spec->description[0] ? spec->description : "raises the events of its provider");
	fprintf(f,
		"\n\n    import pem_%s  # this file, beside the program or in PYTHONPATH\n"
		"    pem record -- python3 program.py\n",
		spec->provider);
	pem_python__put_head(f);
	put_all(f, spec);
	put_model(f, spec);
	pem_python__put_attach(f, spec);
	for (i = 0; i < spec->labels_count; i++)
		put_labels(f, &spec->labels[i]);
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_notify(f, &spec->events[i]);
	}
	for (i = 0; i < spec->event_count; i++)
		put_interval(f, &spec->events[i]);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	char *name;
	size_t i;

	for (i = 0; i < set->count; i++) {
		if (!set->specs[i].stub_count)
			continue;
		name = pem_xprintf("pem_%s.py", set->specs[i].provider);
		put_module(pem_output__file(out, name), &set->specs[i]);
		free(name);
	}
}

const struct pem_backend pem_backend_python = {
	.name = "python",
	.description = "pem_PROVIDER.py: functions that raise events, for Python 3.9 and later",
	.emit = emit,
};
