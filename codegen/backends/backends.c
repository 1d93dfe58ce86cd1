/* SPDX-License-Identifier: MIT */
/* backends.c - the list of backends, one on each line so that two people can add one each */
#include "backend.h"

#include <stddef.h>

/* clang-format off */
const struct pem_backend *const pem_backends[] = {
	&pem_backend_c,
	&pem_backend_model,
	&pem_backend_ctf,
	&pem_backend_bpf,
	&pem_backend_cxx,
	&pem_backend_fortran,
	&pem_backend_java,
	&pem_backend_python,
	&pem_backend_rust,
	&pem_backend_kmod,
	&pem_backend_man,
	&pem_backend_html,
	&pem_backend_usdt,
	&pem_backend_lttng,
	&pem_backend_none,
	&pem_backend_agent,
	NULL,
};
/* clang-format on */
