# Every kind of finding is in the manual page, and --fail-on takes it: of 49 ms no kind can be judged.
top=$data/../..
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
for kind in $(sed -n 's/^RULE("\([^"]*\)".*/\1/p' "$top/src/diagnose/rules.def" | sort -u); do
	grep -qx "\.It Li $kind" "$top/docs/man/spoor-diagnose.1" || echo "spoor-diagnose.1 does not have $kind"
	code=0
	spoor diagnose x.nettrace --fail-on $kind >/dev/null 2>err || code=$?
	[ $code = 2 ] && grep -q "^--fail-on $kind: no process could be judged" err || cat err
done
echo done
