# Each analysis ends with 0 if the file has nothing for it, and with 1 if the options select nothing.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
for analysis in gc exceptions alloc locks waits threadpool jit requests http async db startup thread-time off-cpu; do
	codes=
	for options in "" "-p 4194303" "--from 1000s" "--json"; do
		spoor report --$analysis $options x.nettrace >out 2>err && code=0 || code=$?
		codes="$codes $code"
	done
	echo "$analysis$codes"
done
rm -f x.nettrace out err
