# SPDX-License-Identifier: MIT
# Sources are plugins: each folder here builds one $(B)/lib/pem/source-NAME.so.

include $(sort $(wildcard libpem/sources/*/build.mk))
