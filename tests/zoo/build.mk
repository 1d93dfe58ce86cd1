# SPDX-License-Identifier: MIT
# The zoo: programs that nobody here wrote, plain and watched. tests/zoo/run lists the variables.

.PHONY: zoo
zoo: all
	@B='$(B)' T='$(T)' tests/zoo/run
