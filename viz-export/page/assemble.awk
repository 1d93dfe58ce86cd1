# SPDX-License-Identifier: MIT
# assemble.awk - put files into a page: a line '@NAME@' becomes the file's text. See build.mk. A name with
# a '/' is a path from the top of the tree.

function fail(text)
{
	print "assemble.awk: " text > "/dev/stderr"
	failed = 1
	exit 1
}

# Which file a name stands for.
function path_of(name)
{
	if (name == "licence")
		return licence
	return name ~ "/" ? name : (name ~ /^dygraph/ ? library : own) "/" name
}

function put(name,    path, line, status, lines)
{
	path = path_of(name)
	while ((status = (getline line < path)) > 0) {
		lines++
		if (tolower(line) ~ /<\/(script|style)/ || line ~ /<!--/ || line ~ /-->/)
			fail(path ":" lines ": text that could end its element")
		# Its file is not there to be found.
		if (line !~ /sourceMappingURL=/)
			print line
		else if (line ~ /\*\/./)
			fail(path ":" lines ": more than the name of a source map in one line")
	}
	if (status < 0 || !lines)
		fail("can't read " path)
	close(path)
}

/^@data@$/ { print; marks++; next }
/^@other@$/ { print; next }
/^@[A-Za-z0-9_.\/-]+@$/ { put(substr($0, 2, length($0) - 2)); next }
{ print }

END {
	if (!failed && marks != 1)
		fail("the page needs one line @data@")
}
