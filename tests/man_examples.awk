# Prints the examples of manual pages, one a line: PAGE, a tab, its rule (or "-"), a tab, the command. Input: docs/man/*.[17].
#
# An example is a .Dl line below ".Sh EXAMPLES", or a line of a literal block there; a line that ends with a backslash continues. A block that begins
# with #include is a C program and is left out. A comment right before an example is its rule for tests/feature/verbs/man_examples.sh:
#
#   .\" test: dotnet         needs a .NET process
#   .\" test: ctrl-c         runs until it is interrupted, and prints on standard output; may follow dotnet
#   .\" test: not run, WHY   cannot run in a test
function plain(text) {
	gsub(/\\-/, "-", text)
	gsub(/\\&/, "", text)
	gsub(/\\\(aq/, "'", text)
	gsub(/\\e/, "\\", text)
	return text
}
function emit(command) {
	page = FILENAME
	sub(/.*\//, "", page)
	sub(/\.[17]$/, "", page)
	print page "\t" (rule == "" ? "-" : rule) "\t" command
	rule = ""
}
FNR == 1 { inside = block = 0; rule = "" }
/^\.Sh / { inside = $2 == "EXAMPLES"; next }
!inside { next }
/^\.\\" test: / { rule = substr($0, 11); next }
/^\.Dl / { emit(plain(substr($0, 5))); next }
/^\.Bd / { block = 1; text = ""; next }
/^\.Ed/ { block = 0; next }
block && /^#include/ { block = 0; next }
block {
	line = plain($0)
	sub(/^[ \t]+/, "", line)
	text = text line
	if (!sub(/ *\\$/, " ", text)) {
		emit(text)
		text = ""
	}
}
