/* SPDX-License-Identifier: MIT */
/*
 * document.h - what document.c and parameters.c share while an experiment is read
 *
 * Functions return 0, or -errno after the mistake and its place were noted.
 */
#ifndef EXPLORE_DOCUMENT_H
#define EXPLORE_DOCUMENT_H

#include "experiment/experiment.h"

#include "settings/xml.h"

/* A document while it is read. */
struct explore_reader {
	struct explore_experiment *experiment;
	struct settings_xml *xml;
	struct pem_error *error;
};

/* Note that there is no memory. Returns -ENOMEM. */
int explore_reader__no_memory(struct pem_error *error);
/* Copy a text; NULL stays NULL. */
int explore_reader__copy(struct explore_reader *reader, char **to, const char *text);
/* Read <parameter> or <constraint>. */
int explore_reader__parameter(struct explore_reader *reader, const struct settings_xml_node *node);
int explore_reader__constraint(struct explore_reader *reader, const struct settings_xml_node *node);
/* Read the conditions of all parameters, which may name any of them. */
int explore_reader__conditions(struct explore_reader *reader, const struct settings_xml_node *root);
/*
 * Is a configuration of an experiment (arg) allowed? Levels of parameters that mean nothing in it
 * become 0.
 */
bool explore_reader__allows(void *arg, uint32_t *levels);

#endif
