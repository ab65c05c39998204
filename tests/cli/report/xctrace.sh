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
# Rows that lie across the pieces in which the file is read keep their frames.
mkdir many
awk 'BEGIN {
	print "<?xml version=\"1.0\"?><trace-query-result><node><schema name=\"time-profile\"/>"
	for (i = 1; i <= 2000; i++) {
		binary = i == 1 ? "<binary id=\"1\" name=\"shop\" load-addr=\"0x100000\" path=\"/opt/shop\"/>" : "<binary ref=\"1\"/>"
		row = "<row><sample-time>" i * 1000000 "</sample-time><thread><tid>7</tid><process><pid>6</pid></process></thread><weight>1000000</weight><backtrace>"
		row = row "<frame name=\"leaf_" i "\" addr=\"" 2000000 + 64 * i "\">" binary "</frame>"
		print row "<frame name=\"caller_" i "\" addr=\"" 4000000 + 64 * i "\"><binary ref=\"1\"/></frame></backtrace></row>"
	}
	print "</node></trace-query-result>" }' >many/time-profile.xml
spoor flame many --format folded -o - | sed -nE 's/.*caller_([0-9]+).*;.*leaf_([0-9]+).* 1$/\1 \2/p' | awk '$1 == $2 { right++ } $1 != $2 { wrong++ } END { print right + 0, "right", wrong + 0, "wrong" }'
