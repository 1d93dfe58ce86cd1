# SPDX-License-Identifier: MIT
# Calibration of the page-size agent: objects, which the agent, the tests and the benchmark are
# linked with, together with those of the model.

PAGE_CALIBRATE_OBJ := $(call objects,$(wildcard agents/page-size/calibrate/*.c))

$(addprefix $(B)/tests/,page_size_calibrate page_size_overlap): $(PAGE_CALIBRATE_OBJ) \
  $(call objects,$(wildcard agents/page-size/model/*.c))
