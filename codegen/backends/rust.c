/* SPDX-License-Identifier: MIT */
/*
 * rust.c - pem_PROVIDER/, a Rust crate without std or other crates, over PROVIDER_symbols.c in its
 * c/
 *
 *	pem_PROVIDER::notify_X(fields)	enable byte, test, branch; an enabled event goes to
 *					pem_raise_X
 *	pem_PROVIDER::enabled_X()	is the event wanted?
 *	pem_PROVIDER::E::L		label L of <enum> or <flags> E; a type around the number, so
 *					that any number may be passed
 *	pem_PROVIDER::XScope::new(..)	begin now, end when it is dropped
 *
 * The crate builds without changes: build.rs runs the C compiler to make a static library of c/.
 */
#include "language.h"

#include <pem/stub.h>

#include <stdlib.h>
#include <string.h>

#define WIDTH 100

static const char *rust_type(unsigned type)
{
	static const char *const names[PEM_TYPE_COUNT] = {
		[PEM_TYPE_UINT8] = "u8",    [PEM_TYPE_UINT16] = "u16",  [PEM_TYPE_UINT32] = "u32",
		[PEM_TYPE_UINT64] = "u64",  [PEM_TYPE_INT8] = "i8",     [PEM_TYPE_INT16] = "i16",
		[PEM_TYPE_INT32] = "i32",   [PEM_TYPE_INT64] = "i64",   [PEM_TYPE_FLOAT32] = "f32",
		[PEM_TYPE_FLOAT64] = "f64", [PEM_TYPE_ADDRESS] = "u64",
	};

	return names[type];
}

/* The type in which pem_raise_X takes a number. */
static const char *largest_type(unsigned type)
{
	if (pem_type__size(type) >= 4)
		return rust_type(type);
	return pem_type__is_signed(type) ? "i32" : "u32";
}

/* --- labels --- */

static int has_guard(const struct pem_spec_event *begin)
{
	const struct pem_spec_event *end = pem_interval__end(begin);

	return end && pem_interval__is_covered(begin, end);
}

/* The type of a guard. The caller frees it. */
static char *guard_name(const struct pem_spec_event *begin)
{
	char *stem = pem_interval__name(begin), *camel = pem_camel_case(stem);
	char *name = pem_xprintf("%sScope", camel);

	free(stem);
	free(camel);
	return name;
}

/*
 * The type's name in camel case, as in Rust. It is neither a word of Rust nor a guard's name. The
 * caller frees it.
 */
static char *type_name(const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	char *camel = pem_camel_case(labels->name), *name;
	int is_taken = !strcmp(camel, "Self");
	size_t i;

	for (i = 0; i < spec->event_count && !is_taken; i++) {
		if (!has_guard(&spec->events[i]))
			continue;
		name = guard_name(&spec->events[i]);
		is_taken = !strcmp(camel, name);
		free(name);
	}
	name = pem_xprintf("%s%s", camel, is_taken ? "_" : "");
	free(camel);
	return name;
}

static void put_flag_operators(FILE *f, const char *name)
{
	static const char *const operators[][3] = {
		{"BitOr", "bitor", "|"}, {"BitAnd", "bitand", "&"}, {"BitXor", "bitxor", "^"}};
	size_t i;

	for (i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		fprintf(f,
			"impl core::ops::%2$s for %1$s {\n    type Output = %1$s;\n"
			"    #[inline]\n    fn %3$s(self, other: %1$s) -> %1$s {\n"
			"        %1$s(self.0 %4$s other.0)\n    }\n}\n\n",
			name, operators[i][0], operators[i][1], operators[i][2]);
}

static void put_labels(FILE *f, const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	const struct pem_spec_label *label;
	const char *base = rust_type(pem_labels__type(spec, labels));
	int is_flags = labels->kind == PEM_LABELS_FLAGS;
	char *name = type_name(spec, labels), *constant;
	size_t i;

	pem_put_wrapped(f, "/// ", WIDTH, labels->description);
	fprintf(f,
		"#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]\n"
		"#[repr(transparent)]\npub struct %1$s(pub %2$s);\n\nimpl %1$s {\n",
		name, base);
	for (i = 0; i < labels->count; i++) {
		label = &labels->labels[i];
		constant = pem_upper_snake(label->name);
		pem_put_wrapped(f, "    /// ", WIDTH, label->description);
		fprintf(f, "    pub const %1$s: %2$s = %2$s(", constant, name);
		if (label->is_negative)
			fprintf(f, "%lld);\n", (long long)label->value);
		else
			fprintf(f, is_flags ? "0x%llx);\n" : "%llu);\n",
				(unsigned long long)label->value);
		free(constant);
	}
	fprintf(f, "}\n\n");
	if (is_flags)
		put_flag_operators(f, name);
	free(name);
}

/* --- fields --- */

/*
 * A field's name as a variable. It differs from the crate's own types, which a parameter can't
 * hide. The caller frees it.
 */
static char *variable(const struct pem_spec_event *event, const struct pem_spec_field *field)
{
	const char *mark = "";
	char *name;
	size_t i;

	for (i = 0; i < event->spec->labels_count; i++) {
		name = type_name(event->spec, &event->spec->labels[i]);
		if (!strcmp(name, field->c_name))
			mark = "_";
		free(name);
	}
	return pem_xprintf("%s%s", field->c_name, mark);
}

/* lifetime: "'a " in a guard that keeps the text, else "". */
static void put_type(FILE *f, const struct pem_spec *spec, const struct pem_spec_field *field,
		     const char *lifetime)
{
	char *name;

	switch (field->type) {
	case PEM_TYPE_STRING:
		fprintf(f, "&%sstr", lifetime);
		break;
	case PEM_TYPE_LIST:
		fprintf(f, "&[%s]", rust_type(field->element_type));
		break;
	case PEM_TYPE_ARRAY:
		fprintf(f, "&%s[%s; %u]", lifetime, rust_type(field->element_type),
			field->max_count);
		break;
	default:
		if (!field->labels) {
			fprintf(f, "%s", rust_type(field->type));
			break;
		}
		name = type_name(spec, field->labels);
		fprintf(f, "%s", name);
		free(name);
	}
}

/* Print parameters. kept: the event whose fields a guard borrows; NULL: there is no guard. */
static void put_parameters(FILE *f, const struct pem_spec_event *event,
			   const struct pem_spec_event *kept)
{
	const struct pem_spec_field *field;
	const char *lifetime;
	char *name;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		name = variable(event, field);
		lifetime = kept && pem_spec_event__field(kept, field->c_name) ? "'a " : "";
		fprintf(f, "%s%s: ", i ? ", " : "", name);
		put_type(f, event->spec, field, lifetime);
		free(name);
	}
}

/* --- the C side --- */

static void put_extern(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	char *name;
	size_t i;

	fprintf(f, "    fn pem_raise_%s(pem_enable: u32", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		name = variable(event, field);
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, ", %1$s: *const u8, pem_bytes_%1$s: u64", name);
		else if (field->type == PEM_TYPE_LIST)
			fprintf(f, ", pem_count_%1$s: u32, %1$s: *const %2$s", name,
				rust_type(field->element_type));
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, ", %s: *const %s", name, rust_type(field->element_type));
		else
			fprintf(f, ", %s: %s", name, largest_type(field->type));
		free(name);
	}
	fprintf(f, ");\n");
}

static void put_externs(FILE *f, const struct pem_spec *spec)
{
	size_t i;

	fprintf(f,
		"extern \"C\" {\n"
		"    // The control page: the enable bytes behind its header.\n"
		"    static pem_page_%s: [core::sync::atomic::AtomicU8; %llu];\n",
		spec->provider, (unsigned long long)pem_page_bytes(spec));
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_extern(f, &spec->events[i]);
	}
	fprintf(f, "}\n\n");
}

/* --- events --- */

/* self: "self." where a guard keeps the fields, else "". */
static void put_argument(FILE *f, const struct pem_spec_event *event,
			 const struct pem_spec_field *field, const char *self)
{
	char *name = variable(event, field);
	int narrow = pem_type__size(field->type) && pem_type__size(field->type) < 4;
	unsigned labels_type = field->labels ? pem_labels__type(event->spec, field->labels) : 0;

	fprintf(f, ", ");
	if (field->type == PEM_TYPE_STRING)
		fprintf(f, "%1$s%2$s.as_ptr(), %1$s%2$s.len() as u64", self, name);
	else if (field->type == PEM_TYPE_LIST)
		fprintf(f, "%1$s%2$s.len().min(%3$u) as u32, %1$s%2$s.as_ptr()", self, name,
			field->max_count);
	else if (field->type == PEM_TYPE_ARRAY)
		fprintf(f, "%s%s.as_ptr()", self, name);
	else if (field->labels && labels_type == field->type && !narrow)
		fprintf(f, "%s%s.0", self, name);
	else if (field->labels)
		fprintf(f, "%s%s.0 as %s", self, name, largest_type(field->type));
	else if (narrow)
		fprintf(f, "%s%s.into()", self, name);
	else
		fprintf(f, "%s%s", self, name);
	free(name);
}

/* Print code that raises the event if it is enabled. */
static void put_raise(FILE *f, const struct pem_spec_event *event, const char *indent,
		      const char *self)
{
	size_t i;

	fprintf(f,
		"%1$s// SAFETY: the page is as large as is said, is never unmapped, and its bytes "
		"are read whole.\n"
		"%1$slet pem_enable = unsafe { "
		"pem_page_%2$s[%3$zu].load(core::sync::atomic::Ordering::Relaxed) };\n"
		"%1$sif pem_enable != 0 {\n"
		"%1$s    // SAFETY: what is pointed to is only read, within its length, before the "
		"call returns.\n"
		"%1$s    unsafe { pem_raise_%4$s(pem_enable.into()",
		indent, event->spec->provider,
		sizeof(struct pem_control_header) + event->stub_index, event->c_name);
	for (i = 0; i < event->field_count; i++)
		put_argument(f, event, &event->fields[i], self);
	fprintf(f, ") }\n%s}\n", indent);
}

static void put_event_comment(FILE *f, const struct pem_spec_event *event)
{
	char *text = pem_event__text(event), *more, *name;
	size_t i;

	pem_put_wrapped(f, "/// ", WIDTH, text);
	free(text);
	if (event->field_count)
		fprintf(f, "///\n");
	for (i = 0; i < event->field_count; i++) {
		more = pem_field__text(&event->fields[i]);
		name = variable(event, &event->fields[i]);
		fprintf(f, "/// * `%s`: %s\n", name, more);
		free(name);
		free(more);
	}
}

static void put_deprecated(FILE *f, const struct pem_spec_event *event)
{
	const char *p;

	if (!event->deprecated[0])
		return;
	fprintf(f, "#[deprecated(note = \"");
	for (p = event->deprecated; *p; p++)
		fprintf(f, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", *p);
	fprintf(f, "\")]\n");
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	put_event_comment(f, event);
	put_deprecated(f, event);
	fprintf(f, "#[inline]\npub fn notify_%s(", event->c_name);
	put_parameters(f, event, NULL);
	fprintf(f, ") {\n");
	put_raise(f, event, "    ", "");
	fprintf(f,
		"}\n\n/// Does anybody want %1$s? For work that only the event needs.\n#[inline]\n"
		"pub fn enabled_%2$s() -> bool {\n"
		"    // SAFETY: as in the function above.\n"
		"    unsafe { pem_page_%3$s[%4$zu].load(core::sync::atomic::Ordering::Relaxed) != "
		"0 }\n"
		"}\n\n",
		event->name, event->c_name, event->spec->provider,
		sizeof(struct pem_control_header) + event->stub_index);
}

/* --- intervals --- */

static int borrows(const struct pem_spec_event *end)
{
	size_t i;

	for (i = 0; i < end->field_count; i++) {
		if (end->fields[i].type == PEM_TYPE_STRING || end->fields[i].type == PEM_TYPE_ARRAY)
			return 1;
	}
	return 0;
}

static void put_guard_struct(FILE *f, const struct pem_spec_event *begin,
			     const struct pem_spec_event *end, const char *type,
			     const char *lifetime)
{
	char *name;
	size_t i;

	fprintf(f,
		"/// %s now, and %s when it is dropped: at the end of its block, by return or "
		"panic.\n"
		"#[must_use = \"the interval ends when this is dropped\"]\n"
		"pub struct %s%s {\n",
		begin->name, end->name, type, lifetime);
	for (i = 0; i < end->field_count; i++) {
		name = variable(end, &end->fields[i]);
		fprintf(f, "    %s: ", name);
		put_type(f, end->spec, &end->fields[i], "'a ");
		fprintf(f, ",\n");
		free(name);
	}
	fprintf(f, "    // An interval ends in the thread it began in: neither Send nor Sync.\n"
		   "    pem_thread: core::marker::PhantomData<*const ()>,\n}\n\n");
}

static void put_guard(FILE *f, const struct pem_spec_event *begin, const struct pem_spec_event *end)
{
	const char *lifetime = borrows(end) ? "<'a>" : "", *any = borrows(end) ? "<'_>" : "";
	char *type = guard_name(begin), *name;
	size_t i;

	put_guard_struct(f, begin, end, type, lifetime);
	fprintf(f, "impl%1$s %2$s%1$s {\n    #[inline]\n", lifetime, type);
	if (!begin->field_count)
		fprintf(f, "    #[allow(clippy::new_without_default)]\n");
	fprintf(f, "    pub fn new(");
	put_parameters(f, begin, end);
	fprintf(f, ") -> %s%s {\n", type, lifetime);
	put_raise(f, begin, "        ", "");
	fprintf(f, "        %s { ", type);
	for (i = 0; i < end->field_count; i++) {
		name = variable(end, &end->fields[i]);
		fprintf(f, "%s, ", name);
		free(name);
	}
	fprintf(f,
		"pem_thread: core::marker::PhantomData }\n    }\n}\n\n"
		"impl core::ops::Drop for %s%s {\n    #[inline]\n    fn drop(&mut self) {\n",
		type, any);
	put_raise(f, end, "        ", "self.");
	fprintf(f, "    }\n}\n\n");
	free(type);
}

/* --- crate --- */

static void put_library(FILE *f, const struct pem_spec *spec)
{
	size_t i;

	pem_put_line_banner(f, "//", spec);
	pem_put_wrapped(f, "//! ", WIDTH, spec->description);
	fprintf(f,
		"#![no_std]\n"
		"// Names are the spec's.\n"
		"#![allow(non_snake_case, clippy::too_many_arguments, clippy::unnecessary_cast)]\n"
		"#![allow(clippy::missing_safety_doc, clippy::doc_lazy_continuation)]\n\n");
	for (i = 0; i < spec->labels_count; i++)
		put_labels(f, spec, &spec->labels[i]);
	if (spec->stub_count)
		put_externs(f, spec);
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_notify(f, &spec->events[i]);
	}
	for (i = 0; i < spec->event_count; i++) {
		if (has_guard(&spec->events[i]))
			put_guard(f, &spec->events[i], pem_interval__end(&spec->events[i]));
	}
}

/* Print a version for Cargo, which wants three numbers without leading zeros. */
static void put_manifest(FILE *f, const struct pem_spec *spec)
{
	unsigned number[3] = {0, 0, 0};

	sscanf(spec->version, "%u.%u.%u", &number[0], &number[1], &number[2]);
	pem_put_line_banner(f, "#", spec);
	fprintf(f,
		"[package]\nname = \"pem_%1$s\"\nversion = \"%2$u.%3$u.%4$u\"\nedition = \"2021\"\n"
		"license = \"MIT\"\npublish = false\n",
		spec->provider, number[0], number[1], number[2]);
	if (spec->stub_count)
		fprintf(f, "links = \"pem_%s_symbols\"\nbuild = \"build.rs\"\n", spec->provider);
}

static const char build_script[] =
	"\n"
	"//! Makes a static library of c/, with the C compiler that CC names (cc) and the archiver "
	"that AR names (ar).\n"
	"//! pem's headers are found where PEM_INCLUDE says, or pkg-config, or the compiler by "
	"itself.\n"
	"use std::env;\n"
	"use std::path::Path;\n"
	"use std::process::{exit, Command};\n"
	"\n"
	"fn words_of(name: &str, default: &str) -> Vec<String> {\n"
	"    println!(\"cargo:rerun-if-env-changed={name}\");\n"
	"    let value = env::var(name).unwrap_or_else(|_| default.to_string());\n"
	"    value.split_whitespace().map(String::from).collect()\n"
	"}\n"
	"\n"
	"fn includes() -> Vec<String> {\n"
	"    println!(\"cargo:rerun-if-env-changed=PEM_INCLUDE\");\n"
	"    if let Ok(path) = env::var(\"PEM_INCLUDE\") {\n"
	"        return vec![format!(\"-I{path}\")];\n"
	"    }\n"
	"    let found = Command::new(\"pkg-config\").args([\"--cflags\", \"libpem\"]).output();\n"
	"    match found {\n"
	"        Ok(out) if out.status.success() => {\n"
	"            "
	"String::from_utf8_lossy(&out.stdout).split_whitespace().map(String::from).collect()\n"
	"        }\n"
	"        _ => Vec::new(),\n"
	"    }\n"
	"}\n"
	"\n"
	"fn run(words: &[String], arguments: &[String], mend: &str) {\n"
	"    let program = words.first().map_or(\"\", String::as_str);\n"
	"    let status = "
	"Command::new(program).args(&words[1.min(words.len())..]).args(arguments).status();\n"
	"    match status {\n"
	"        Ok(status) if status.success() => return,\n"
	"        Ok(status) => eprintln!(\"build.rs: '{program}' ended with {status}: {mend}\"),\n"
	"        Err(error) => eprintln!(\"build.rs: '{program}' can't be run: {error}: "
	"{mend}\"),\n"
	"    }\n"
	"    exit(1);\n"
	"}\n"
	"\n"
	"fn main() {\n"
	"    let out = env::var(\"OUT_DIR\").expect(\"cargo sets OUT_DIR\");\n"
	"    let object = Path::new(&out).join(format!(\"{NAME}.o\")).display().to_string();\n"
	"    let library = Path::new(&out).join(format!(\"lib{NAME}.a\")).display().to_string();\n"
	"    let mut arguments: Vec<String> = [\"-std=gnu11\", \"-O2\", "
	"\"-fPIC\"].map(String::from).to_vec();\n"
	"    arguments.extend(words_of(\"CFLAGS\", \"\"));\n"
	"    arguments.extend(includes());\n"
	"    arguments.extend([\"-c\", &format!(\"c/{NAME}.c\"), \"-o\", "
	"&object].map(String::from));\n"
	"    run(&words_of(\"CC\", \"cc\"), &arguments,\n"
	"        \"expected a C compiler (CC) that finds pem's headers (PEM_INCLUDE=folder of "
	"pem/stub.h)\");\n"
	"    let _ = std::fs::remove_file(&library);\n"
	"    run(&words_of(\"AR\", \"ar\"), &[\"crs\".to_string(), library, object], \"expected an "
	"archiver (AR)\");\n"
	"    println!(\"cargo:rustc-link-search=native={out}\");\n"
	"    println!(\"cargo:rustc-link-lib=static={NAME}\");\n"
	"    println!(\"cargo:rerun-if-changed=c\");\n"
	"}\n"
	"\n"
	"const NAME: &str = \"";

static void emit_crate(const struct pem_spec_set *set, const struct pem_spec *spec,
		       struct pem_output *out)
{
	char *folder = pem_xprintf("pem_%s/", spec->provider), *name;
	FILE *f;

	name = pem_xprintf("%sCargo.toml", folder);
	put_manifest(pem_output__file(out, name), spec);
	free(name);
	name = pem_xprintf("%ssrc/lib.rs", folder);
	put_library(pem_output__file(out, name), spec);
	free(name);
	if (spec->stub_count) {
		name = pem_xprintf("%sbuild.rs", folder);
		f = pem_output__file(out, name);
		pem_put_line_banner(f, "//", spec);
		fprintf(f, "%s%s_symbols\";\n", build_script, spec->provider);
		free(name);
		name = pem_xprintf("%sc/", folder);
		pem_emit_symbols(set, spec, out, name);
		free(name);
	}
	free(folder);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	size_t i;

	for (i = 0; i < set->count; i++)
		emit_crate(set, &set->specs[i], out);
}

const struct pem_backend pem_backend_rust = {
	.name = "rust",
	.description =
		"pem_PROVIDER/: a crate without std or dependencies, with PROVIDER_symbols.c",
	.emit = emit,
};
