// SPDX-License-Identifier: LGPL-2.1-or-later
/* stacks.c - a tree of stacks: nodes are locations in their caller's node (contract: pem/code.h) */
#include "code_map.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>

/*
 * The node of a location in its caller's node. Returns it; -ENOMEM; -ENOSPC: there are too many. An
 * outermost one is always made, so that each stack has a node.
 */
static int64_t node_of(struct pem_code *code, uint32_t caller, uint32_t location)
{
	uint32_t *at = pem_number_map__at(&code->node_at, (uint64_t)caller << 32 | location);

	if (!at)
		return -ENOMEM;
	if (*at != PEM_CODE_NONE)
		return *at;
	if (code->node_count >= PEM_CODE_NODES_MAX && caller != PEM_CODE_NONE)
		return -ENOSPC;
	if (pem_grow(&code->nodes, sizeof(*code->nodes), code->node_count + 1,
		     &code->node_capacity) < 0)
		return -ENOMEM;
	code->nodes[code->node_count] = (struct code_node){caller, location};
	*at = (uint32_t)code->node_count++;
	return *at;
}

int64_t pem_code__stack(struct pem_code *code, uint32_t pid, const struct pem_pass_process *process,
			const uint64_t *addresses, size_t count)
{
	uint32_t node = PEM_CODE_NONE;

	if (!count)
		return -EINVAL;
	while (count--) {
		int64_t location = pem_code__locate(code, pid, process, addresses[count]);
		int64_t next = location < 0 ? location : node_of(code, node, (uint32_t)location);

		if (next == -ENOSPC) {
			code->cut++;
			return node;
		}
		if (next < 0)
			return -ENOMEM;
		node = (uint32_t)next;
	}
	return node;
}

int64_t pem_code__sample(struct pem_code *code, const struct pem_record *record,
			 const struct pem_pass_process *process)
{
	const struct pem_event *event = record->event;
	int pc = pem_event__field_by_role(event, PEM_ROLE_CODE);
	int list = pem_event__field(event, "callers");
	uint64_t addresses[1 + PEM_CODE_CALLERS_MAX];
	const void *callers = NULL;
	uint32_t count = 0;

	if (pc < 0)
		return -EINVAL;
	addresses[0] = pem_record__u64(record, (unsigned)pc) + 1;
	if (list >= 0 && event->fields[list].type == PEM_TYPE_LIST &&
	    event->fields[list].element_type == PEM_TYPE_UINT64)
		count = pem_record__list(record, (unsigned)list, &callers);
	if (count > PEM_CODE_CALLERS_MAX)
		count = PEM_CODE_CALLERS_MAX;
	if (count)
		memcpy(addresses + 1, callers, count * sizeof(addresses[0]));
	return pem_code__stack(code, record->pid, process, addresses, 1 + (size_t)count);
}

/* --- stacks that have numbers --- */

static uint64_t key_of(const struct pem_code *code, uint32_t pid,
		       const struct pem_pass_process *process, uint64_t stack)
{
	uint64_t owner = process ? (uint64_t)process->number + 1 : (uint64_t)pid << 32;

	return pem_hash__join(pem_hash__join(0, code->multiplier, owner), code->multiplier, stack);
}

uint32_t pem_code__numbered(const struct pem_code *code, uint32_t pid,
			    const struct pem_pass_process *process, uint64_t stack)
{
	return stack ? pem_number_map__value(&code->numbered_at, key_of(code, pid, process, stack))
		     : PEM_CODE_NONE;
}

static int64_t add_call(struct pem_code *code, uint32_t pid, const struct pem_pass_process *process,
			uint32_t outer, uint64_t address)
{
	int64_t location = pem_code__locate(code, pid, process, address);
	int64_t node = location < 0 ? location : node_of(code, outer, (uint32_t)location);

	if (node != -ENOSPC)
		return node;
	code->cut++;
	return outer;
}

int pem_code__frame(struct pem_code *code, const struct pem_record *record,
		    const struct pem_pass_process *process)
{
	int call = pem_event__field_by_role(record->event, PEM_ROLE_CODE);
	int stack = pem_event__field_by_role(record->event, PEM_ROLE_STACK);
	int outer = pem_event__field_by_role(record->event, PEM_ROLE_OUTER_STACK);
	int64_t node = PEM_CODE_NONE;
	uint64_t number;
	uint32_t *at;

	if (call < 0 || stack < 0 || outer < 0)
		return 0;
	number = pem_record__u64(record, (unsigned)outer);
	if (number)
		node = pem_code__numbered(code, record->pid, process, number);
	if (number && node == PEM_CODE_NONE)
		node = add_call(code, record->pid, process, PEM_CODE_NONE, PEM_CALLERS_CUT);
	if (node >= 0)
		node = add_call(code, record->pid, process, (uint32_t)node,
				pem_record__u64(record, (unsigned)call));
	at = node >= 0 ? pem_number_map__at(&code->numbered_at,
					    key_of(code, record->pid, process,
						   pem_record__u64(record, (unsigned)stack)))
		       : NULL;
	if (!at)
		return -ENOMEM;
	*at = (uint32_t)node;
	return 0;
}

size_t pem_code__node_count(const struct pem_code *code)
{
	return code->node_count;
}

uint32_t pem_code__caller(const struct pem_code *code, uint32_t node)
{
	return code->nodes[node].caller;
}

uint32_t pem_code__node_location(const struct pem_code *code, uint32_t node)
{
	return code->locations[code->nodes[node].location].same;
}

uint64_t pem_code__cut(const struct pem_code *code)
{
	return code->cut;
}
