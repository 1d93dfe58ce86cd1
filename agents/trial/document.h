/* SPDX-License-Identifier: MIT */
/*
 * document.h - what document.c and parameters.c share while an experiment is read
 *
 * Functions return 0, or -errno after the mistake and its place were noted.
 */
#ifndef TRIAL_DOCUMENT_H
#define TRIAL_DOCUMENT_H

#include "trial/trial.h"

#include "settings/xml.h"

/* A document while it is read. */
struct trial_reader {
	struct trial_experiment *experiment;
	struct settings_xml *xml;
	struct pem_error *error;
};

/* The document's schema, exploration.xsd. */
extern const char trial_schema[];
/* Note that there is no memory. Returns -ENOMEM. */
int trial_reader__no_memory(struct pem_error *error);
/* Copy a text; NULL stays NULL. */
int trial_reader__copy(struct trial_reader *reader, char **to, const char *text);
/* Read <parameter> or <constraint>. */
int trial_reader__parameter(struct trial_reader *reader, const struct settings_xml_node *node);
int trial_reader__constraint(struct trial_reader *reader, const struct settings_xml_node *node);
/* Read the conditions of all parameters, which may name any of them. */
int trial_reader__conditions(struct trial_reader *reader, const struct settings_xml_node *root);
/*
 * Is a configuration of an experiment (arg) allowed? Levels of parameters that mean nothing in it
 * become 0.
 */
bool trial_reader__allows(void *arg, uint32_t *levels);

#endif
