/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* providers.h - for libpem-libc, which registers all of its providers as the process starts */
#ifndef PEM_PROVIDERS_H
#define PEM_PROVIDERS_H

#include <pem/abi.h>
#include <pem/stub.h>

/* What pem-codegen knows of a provider: PEM_FACTS_PROVIDER, of its header. */
struct pem_provider_facts {
	uint32_t model_hash; /* pem_model__hash of provider->model */
	uint8_t levels[64]; /* enum pem_level of each event */
	/* Id of an event that each process raises as it starts; 0: none. */
	uint32_t at_start;
};

struct pem_known_provider {
	struct pem_provider *provider;
	const struct pem_provider_facts *facts; /* NULL: they are found in the model's text */
};

/*
 * Register several providers, as pem_provider_register does with one. Where their pages lie one
 * behind the other, that takes the system calls of one. Returns 0, or -errno of the first one that
 * can't be registered; all others are. The providers must stay until they are unregistered. Takes
 * the process lock; makes files.
 */
__attribute__((visibility("default"))) int
pem_providers__register(const struct pem_known_provider providers[], uint32_t count);

/*
 * Count events that were not raised since they came before their provider was registered: as lost,
 * in each session that wants them. Called after the registration, once. Takes no lock.
 */
__attribute__((visibility("default"))) void pem_providers__lose(const struct pem_provider *provider,
								uint32_t event_id, uint32_t count);

#endif
