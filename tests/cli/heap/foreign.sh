# Snapshots of other programs; tests/data/gcdump/README.md says how they were made.
for name in foreign32 foreign64 shuffled; do
	cp "$data/gcdump/$name.gcdump" $name.gcdump
	spoor heap report $name.gcdump
done
spoor heap roots foreign32.gcdump Proxy
spoor heap diff shuffled.gcdump foreign32.gcdump
