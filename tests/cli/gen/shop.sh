# All outputs for a small manifest; the second run changes nothing.
spoor gen "$data/manifest/shop.man" -o out
for file in out/*; do
	echo "---- $file"
	cat "$file"
done
cp -a out before
spoor gen -q "$data/manifest/shop.man" -o out
for file in out/*; do
	[ ! "$file" -nt "before/${file#out/}" ] || echo "$file was written again"
done
