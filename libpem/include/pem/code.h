/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code.h - names the code of a trace: which program or library lay where in each process, what an
 * address of it is called, and which stacks of calls there were
 *
 * Give each record that says what lies in memory to pem_code__map, and each address that matters
 * to pem_code__locate or pem_code__stack, in the order of the trace. Then name all at once with
 * pem_code__name. Link with libpem-names.
 *
 *	address --> location (object and offset) --> names, innermost inlined function first
 *	stack of addresses --> node of a tree, whose parent is the caller
 *
 * An address is told "behind": of a call that is the return address, of a sampled instruction its
 * address plus 1.
 *
 * Files and traces are hostile input. For one thread at a time. Nothing here is async-signal-safe.
 * pem_code__name blocks while it reads files; the rest does not block.
 */
#ifndef PEM_CODE_H
#define PEM_CODE_H

#include <pem/context.h>
#include <pem/trace.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PEM_CODE_NONE UINT32_MAX
/* Nodes that pem_code__stack makes at most, but for outermost ones. */
#define PEM_CODE_NODES_MAX (4u << 20)
/* Callers of a sample that pem_code__sample takes, innermost first. */
#define PEM_CODE_CALLERS_MAX 512u

struct pem_code;

/* A program or library that lay in memory of some process. */
struct pem_code_object {
	const char *path;
	const char *build_id; /* in hexadecimal; "": unknown */
	/*
	 * The first eight bytes of the build id, the first byte the most significant; or as struct
	 * pem_object_query says, once it was named. 0: unknown.
	 */
	uint64_t number;
	const char *trouble; /* why it has no names, or NULL */
};

/* What an instruction is called. */
struct pem_code_name {
	/*
	 * Printable, with its scopes; if another function of the object that was met has the same
	 * name, the source file follows in parentheses. NULL: unknown.
	 */
	const char *function;
	const char *file; /* printable; NULL: unknown */
	uint32_t line; /* 0: unknown */
	/* Of the function: two names with one number are of one. PEM_CODE_NONE: unknown. */
	uint32_t number;
	/* Where the function or variable begins, as the location's offset, but not behind; 0:
	 * unknown. */
	uint64_t start;
};

/* One place in the code. Its names are there after pem_code__name. */
struct pem_code_location {
	uint32_t object; /* index; PEM_CODE_NONE: offset is an address in memory */
	uint32_t pid; /* of the first process that was there */
	uint64_t offset; /* in the object's addresses, behind the instruction */
	uint32_t is_kernel; /* an address of the kernel */
	uint32_t name_count;
	const struct pem_code_name *names; /* innermost first */
};

/* Returns NULL without memory. The caller frees it. */
struct pem_code *pem_code__new(void);
/*
 * The same for data: of locations the names are those of variables, and memory without a file is an
 * object, too, whose path is what the kernel calls it ("//anon", "[heap]", "[stack]"). Give
 * pem_code__map also records of HW::HWPerf::DataMap. The address of data is told plus 1, too.
 */
struct pem_code *pem_code__new_data(void);
/* NULL does nothing. */
void pem_code__free(struct pem_code *code);

/*
 * Take a record of an event that says what lies in memory, by its roles: of meaning
 * PEM_MEANS_OBJECT, or for data HW::HWPerf::DataMap. Returns 0 or -ENOMEM.
 */
int pem_code__map(struct pem_code *code, const struct pem_record *record);
/*
 * The number of the location of an address in a process. process: where the pass over the trace is,
 * for what a forked process has of its parent; NULL: unknown. Returns the number, or -ENOMEM.
 */
int64_t pem_code__locate(struct pem_code *code, uint32_t pid,
			 const struct pem_pass_process *process, uint64_t address_behind);
/*
 * What is mapped at an address, which is not told "behind". Returns 1 with the mapping's begin and
 * end; 0: nothing that is known; or -ENOMEM.
 */
int pem_code__mapping(struct pem_code *code, uint32_t pid, const struct pem_pass_process *process,
		      uint64_t address, uint64_t *begin, uint64_t *end);
/*
 * The node of a stack. addresses[0] is behind the sampled instruction, the others are return
 * addresses, callers last. One tree is of all processes. Stacks are cut at the sampled end once
 * there are PEM_CODE_NODES_MAX nodes; the outermost caller always has one. Returns the node, or
 * -ENOMEM; count of 0: -EINVAL.
 */
int64_t pem_code__stack(struct pem_code *code, uint32_t pid, const struct pem_pass_process *process,
			const uint64_t *addresses, size_t count);
/*
 * The node of a sample, whose outermost function is "[cut off]" if its callers end in
 * PEM_CALLERS_CUT: a record with a field of the role PEM_ROLE_CODE, the sampled instruction,
 * and maybe a list "callers" of return addresses, innermost first. As pem_code__stack; -EINVAL: the
 * record has no such field.
 */
int64_t pem_code__sample(struct pem_code *code, const struct pem_record *record,
			 const struct pem_pass_process *process);

/*
 * Take a record of meaning PEM_MEANS_FRAME: one call of stacks that have numbers. One whose outer
 * stack was not told, since its record was lost, has the outermost function "[cut off]". process:
 * as above. Returns 0 or -ENOMEM.
 */
int pem_code__frame(struct pem_code *code, const struct pem_record *record,
		    const struct pem_pass_process *process);
/*
 * The node of a stack, by its number in a process, as records so far told it. PEM_CODE_NONE: none
 * did, or the number is 0.
 */
uint32_t pem_code__numbered(const struct pem_code *code, uint32_t pid,
			    const struct pem_pass_process *process, uint64_t stack);

/*
 * Locate again what was met before its object was told, and name all locations: by what the trace
 * keeps (pem_code__keep), then by files, and by the kernel and processes, if they are those of this
 * machine and boot. trace: where the records are from; NULL: unknown. Files that another user can
 * change are read by child processes, each for some seconds at most: they are forked, send SIGCHLD,
 * and are waited for by their number. Returns 0 or -ENOMEM.
 */
int pem_code__name(struct pem_code *code, const struct pem_trace *trace);
/*
 * Name what a finished trace has of code and variables, and keep the names in the trace:
 * pem_code__name then gives them on any machine. Call it as soon as the recording has ended, for
 * programs are built again. After limit_ns of reading the trace, later records are left out.
 * Returns 0, or -errno with error, which may be NULL: -EPERM: the trace is another user's. Blocks
 * on files.
 */
int pem_code__keep(const char *directory, uint64_t limit_ns, struct pem_error *error);

/* --- what there is. Pointers are valid until code changes --- */

size_t pem_code__object_count(const struct pem_code *code);
const struct pem_code_object *pem_code__object(const struct pem_code *code, uint32_t object);
size_t pem_code__location_count(const struct pem_code *code);
/* A number that pem_code__locate returned is valid for good. */
const struct pem_code_location *pem_code__location(const struct pem_code *code, uint32_t location);
/*
 * The number of the first location with the same object and offset. It is another one only after
 * pem_code__name, for what was met before its object was told.
 */
uint32_t pem_code__same(const struct pem_code *code, uint32_t location);
size_t pem_code__node_count(const struct pem_code *code);
/* The caller's node, which is a smaller number; PEM_CODE_NONE: this is the outermost one. */
uint32_t pem_code__caller(const struct pem_code *code, uint32_t node);
uint32_t pem_code__node_location(const struct pem_code *code, uint32_t node);
/* Why the kernel's functions have no names, or NULL. */
const char *pem_code__kernel_trouble(const struct pem_code *code);
/* Why the names that the trace keeps are not used, or NULL. */
const char *pem_code__kept_trouble(const struct pem_code *code);
/* Mappings that were left out, since their process had too many; stacks that were cut. */
uint64_t pem_code__left_out(const struct pem_code *code);
uint64_t pem_code__cut(const struct pem_code *code);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
