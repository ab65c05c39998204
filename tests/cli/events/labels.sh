# Label lists of version 6: ids of trace and span, keys with texts and numbers. The case writes the file block by block, because no available writer uses them.
byte() { # N...: bytes of these numbers
	for n; do
		printf "\\$(printf %03o "$n")"
	done
}
block() { # KIND: standard input as one block
	cat >body
	size=$(wc -c <body)
	byte $((size & 255)) $((size >> 8)) 0 "$1"
	cat body
}
zeros() {
	head -c "$1" /dev/zero
}
label_list() {
	byte 1 0 0 0 2 0 0 0
	byte 3 75 249 47 53 119 179 77 166 163 206 146 157 14 14 71 54
	byte 4 183 2 169 11 170 103 240 0
	byte 5 4 && printf City && byte 4 && printf Rome
	byte $((6 + 128)) 5 && printf Retry && byte 5
	byte $((5 + 128)) 4 && printf City && byte 4 && printf Oslo
}
{
	printf Nettrace && byte 0 0 0 0 6 0 0 0 0 0 0 0
	{ byte 234 7 11 0 6 0 21 0 && zeros 16 && byte 0 202 154 59 0 0 0 0 8 0 0 0 0 0 0 0; } | block 1
	{ byte 0 0 10 0 1 1 && printf P && byte 7 1 && printf E && byte 0 0 0 0; } | block 3
	{ byte 5 0 1 2 9 3 11; } | block 6
	label_list | block 8
	# Three events: list 1, list 2, none.
	{ byte 20 0 1 0 && zeros 16 && byte $((1 + 2 + 4 + 16)) 1 0 1 0 1 100 1 16 1 2 16 1 0; } | block 2
	byte 0 0 0 0
} >labels.nettrace
spoor events labels.nettrace
spoor events labels.nettrace --json
