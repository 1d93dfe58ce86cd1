# SPDX-License-Identifier: MIT
#
# guide_links.sed - make the links of an installed guide lead to installed files (sed -z)
#
# A link to a file that is not installed becomes its text.
s|](\.\./\(libpem/include\|spec/abi\)/pem/|](../../../include/pem/|g
s|](\.\./libpem/jvm/|](../../pem/java/|g
s|](\.\./examples/|](examples/|g
s|](man/)|](../../man/man1/)|g
s|](man/\([a-z-]*\.\)\([1-8]\))|](../../man/man\2/\1\2)|g
s|\[\([^]]*\)\](\.\./[^.][^)]*)|\1|g
