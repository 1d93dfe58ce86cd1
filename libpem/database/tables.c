/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tables.c - the columns of each table, as members of its struct in pem/database.h */
#include "connection.h"

#define ROW struct pem_db_application
#define MEMBER(member)                                                                             \
	.name = #member, .offset = offsetof(ROW, member), .bytes = sizeof(((ROW *)0)->member)
#define INTEGER(member)                                                                            \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_INTEGER                                             \
	}
#define REAL(member)                                                                               \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_REAL                                                \
	}
#define TEXT(member)                                                                               \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_TEXT                                                \
	}
#define KEY_INTEGER(member)                                                                        \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_INTEGER, .is_key = 1                                \
	}
#define KEY_TEXT(member)                                                                           \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_TEXT, .is_key = 1                                   \
	}
#define REFERENCE(member, table)                                                                   \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_INTEGER, .references = (table)                      \
	}
#define KEY_REFERENCE(member, table)                                                               \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_INTEGER, .references = (table), .is_key = 1         \
	}
#define LABELLED(member, names)                                                                    \
	{                                                                                          \
		MEMBER(member), .type = PEM_DB_INTEGER, .labels = PEM_DB_COUNT(names),             \
				.label = (names)                                                   \
	}

static const char *const origins[] = {"measured", "sampled", "simulated"};
static const char *const states[] = {"proposed", "on trial", "kept", "withdrawn"};
static const char *const roles[] = {"basis", "treated", "control", "excluded"};
static const char *const verdicts[] = {"faster", "equal", "slower", "unclear"};
static const char *const accesses[] = {"observe", "change"};

static const struct pem_db_column application[] = {
	KEY_TEXT(build_id),
	TEXT(name),
	TEXT(path),
};

#undef ROW
#define ROW struct pem_db_machine
static const struct pem_db_column machine[] = {
	KEY_TEXT(fingerprint), TEXT(processor), TEXT(kernel), TEXT(hypervisor), TEXT(facts),
};

#undef ROW
#define ROW struct pem_db_run
static const struct pem_db_column run[] = {
	KEY_TEXT(uuid),
	REFERENCE(application, PEM_DB_APPLICATION),
	REFERENCE(machine, PEM_DB_MACHINE),
	TEXT(agent),
	TEXT(workload),
	INTEGER(began_ns),
	INTEGER(wall_ns),
	INTEGER(status),
};

#undef ROW
#define ROW struct pem_db_metric
static const struct pem_db_column metric[] = {
	KEY_REFERENCE(run, PEM_DB_RUN),
	KEY_TEXT(name),
	TEXT(unit),
	INTEGER(count),
	REAL(mean),
	REAL(spread),
	REAL(minimum),
	REAL(maximum),
	LABELLED(origin, origins),
};

#undef ROW
#define ROW struct pem_db_directive
static const struct pem_db_column directive[] = {
	KEY_REFERENCE(application, PEM_DB_APPLICATION),
	KEY_REFERENCE(machine, PEM_DB_MACHINE),
	KEY_TEXT(agent),
	KEY_TEXT(subject),
	TEXT(text),
	LABELLED(state, states),
	INTEGER(rank),
	REAL(predicted),
	REAL(predicted_low),
	REAL(predicted_high),
	REAL(gain),
	INTEGER(cost_bytes),
	INTEGER(began_ns),
	TEXT(reason),
};

#undef ROW
#define ROW struct pem_db_evidence
static const struct pem_db_column evidence[] = {
	KEY_REFERENCE(directive, PEM_DB_DIRECTIVE),
	KEY_REFERENCE(run, PEM_DB_RUN),
	LABELLED(role, roles),
	REAL(value),
};

#undef ROW
#define ROW struct pem_db_validation
static const struct pem_db_column validation[] = {
	KEY_REFERENCE(directive, PEM_DB_DIRECTIVE),
	KEY_INTEGER(at_ns),
	LABELLED(verdict, verdicts),
	REAL(gain),
	REAL(gain_low),
	REAL(gain_high),
	INTEGER(treated),
	INTEGER(controls),
};

#undef ROW
#define ROW struct pem_db_lease
static const struct pem_db_column lease[] = {
	KEY_TEXT(resource),
	KEY_TEXT(holder),
	LABELLED(access, accesses),
	INTEGER(until_ns),
};

#define TABLE(table)                                                                               \
	{                                                                                          \
		.name = #table, .row_bytes = sizeof(struct pem_db_##table), .columns = (table),    \
		.column_count = PEM_DB_COUNT(table)                                                \
	}

static const struct pem_db_layout layouts[PEM_DB_TABLES] = {
	[PEM_DB_APPLICATION - 1] = TABLE(application),
	[PEM_DB_MACHINE - 1] = TABLE(machine),
	[PEM_DB_RUN - 1] = TABLE(run),
	[PEM_DB_METRIC - 1] = TABLE(metric),
	[PEM_DB_DIRECTIVE - 1] = TABLE(directive),
	[PEM_DB_EVIDENCE - 1] = TABLE(evidence),
	[PEM_DB_VALIDATION - 1] = TABLE(validation),
	[PEM_DB_LEASE - 1] = TABLE(lease),
};

const struct pem_db_layout *pem_database__layout(enum pem_db_table table)
{
	return table >= 1 && table <= PEM_DB_TABLES ? &layouts[table - 1] : NULL;
}
