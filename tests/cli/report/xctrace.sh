# A folder with samples of macOS, made by hand: names, images, threads, an address without a name; then a damaged file.
mkdir shop
cp "$data/xctrace/time-profile.xml" shop/
spoor flame shop --format folded -o -
spoor report shop
spoor events shop
head -c 3000 shop/time-profile.xml >cut.xml
mv cut.xml shop/time-profile.xml
spoor report shop >cut.out || echo "code $?"
head -n 3 cut.out
echo 'no xml' >shop/time-profile.xml
spoor report shop || echo "code $?"
