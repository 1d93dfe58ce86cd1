// SPDX-License-Identifier: GPL-2.0-only
/*
 * without.c - answers for the features that this kernel's headers do not let compile
 *
 * kmod/declared finds out which these are.
 */
#include "sampling.h"

#include "pem_kmod_tried.h"

#if !PEM_KMOD_HAS_counters
int pem_counters__init(void)
{
	return 0;
}

void pem_counters__exit(void)
{
}

int pem_counters__open(struct pem_kmod_probe_data *data, struct pem_kmod_counters *asked)
{
	return -EOPNOTSUPP;
}

void pem_counters__close(struct pem_kmod_probe_data *data)
{
}

void pem_counters_read(struct pem_kmod_probe_data *data, uint32_t event_id)
{
}
#endif

#if !PEM_KMOD_HAS_accessed
int pem_accessed__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_accessed *asked)
{
	return -EOPNOTSUPP;
}

void pem_accessed__free(struct pem_kmod_sampling *sampling)
{
}
#endif

#if !PEM_KMOD_HAS_supply
int pem_supply__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_supply *asked,
		    bool runs)
{
	return -EOPNOTSUPP;
}

void pem_supply__free(struct pem_kmod_sampling *sampling)
{
}
#endif
