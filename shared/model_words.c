/* SPDX-License-Identifier: MIT */
/*
 * model_words.c - see model_words.h
 */
#include "model_words.h"

const char *const pem_type_words[] = {
	"-",     "uint8",   "uint16",  "uint32", "uint64", "int8",    "int16", "int32",
	"int64", "float32", "float64", "string", "list",   "address", "array",
};
const char *const pem_meaning_words[] = {
	"-",
	"sets-thread",
	"thread-start",
	"thread-end",
	"process-name",
	"interval-begin",
	"interval-end",
	"counter",
	"gauge",
	"allocation",
	"release",
	"sample",
	"send",
	"receive",
	"access",
	"thread-name",
	"object",
	"thread-waking",
	"thread-runnable",
	"process-arguments",
	"descriptor-name",
	"call-path",
	"thread-state",
	"frame",
};
const char *const pem_role_words[] = {
	"-",           "process", "thread",      "previous-thread",
	"parent",      "name",    "value",       "address",
	"size",        "key",     "cpu",         "code",
	"old-address", "state",   "system-call", "descriptor",
	"interrupt",   "holder",  "stack",       "outer-stack",
	"file-kind",
};
const char *const pem_source_words[] = {"stub", "tracepoint", "perf",  "perf-sample",
					"usdt", "module",     "probe", "simulated",
					"proc", "uprobe"};
const char *const pem_level_words[] = {"-", "error", "warning", "info", "detail", "debug", "named"};
const char *const pem_scope_words[] = {"-", "thread", "process", "cpu", "system"};
const char *const pem_metric_form_words[] = {"-",          "rate",    "ratio",
					     "difference", "between", "quotient"};
const char *const pem_label_kind_words[] = {"-", "enum", "flags"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
_Static_assert(COUNT(pem_type_words) == PEM_TYPE_COUNT, "a word for every type");
_Static_assert(COUNT(pem_meaning_words) == PEM_MEANING_COUNT, "a word for every meaning");
_Static_assert(COUNT(pem_role_words) == PEM_ROLE_COUNT, "a word for every role");
_Static_assert(COUNT(pem_source_words) == PEM_SOURCE_COUNT, "a word for every source");
_Static_assert(COUNT(pem_level_words) == PEM_LEVEL_COUNT, "a word for every level");
_Static_assert(COUNT(pem_scope_words) == PEM_SCOPE_COUNT, "a word for every scope");
_Static_assert(COUNT(pem_metric_form_words) == PEM_METRIC_FORMS, "a word for every form");
_Static_assert(COUNT(pem_label_kind_words) == PEM_LABELS_COUNT, "a word for every kind of labels");
