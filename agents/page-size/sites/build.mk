# SPDX-License-Identifier: MIT
# Names of allocation sites. They need no library.
$(B)/tests/page_size_site: $(call objects,agents/page-size/sites/site.c)
