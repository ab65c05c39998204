# A command without a runtime: it runs, its output is not changed, and spoor returns its exit code, or 1 if nothing was traced.
code=0
spoor trace -q -o x.nettrace -- sh -c 'echo out; echo err >&2; exit 7' || code=$?
[ ! -e x.nettrace ]
ls
exit $code
