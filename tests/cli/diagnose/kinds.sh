# Every kind of finding is in the manual page, and --fail-on takes it.
top=$data/../..
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
for kind in $(sed -n 's/^RULE("\([^"]*\)".*/\1/p' "$top/src/diagnose/rules.def" | sort -u); do
	grep -qx "\.It Li $kind" "$top/docs/man/spoor-diagnose.1" || echo "spoor-diagnose.1 does not have $kind"
	spoor diagnose x.nettrace --fail-on $kind >/dev/null || echo "exit $?"
done
echo done
