# A missing command is an error in the usage. A command that cannot be run exits as in a shell, and no recording continues.
for verb in record trace counters; do
	spoor $verb -- 2>&1 || echo "exit $?"
	spoor $verb -- '' 2>&1 || echo "exit $?"
done
for command in ./no-such-command /etc/passwd; do
	spoor record -p $$ -o x.nettrace -- $command 2>&1 || echo "exit $?"
	spoor record -D 10 -o x.nettrace -- $command 2>&1 || echo "exit $?"
	spoor counters -- $command 2>&1 || echo "exit $?"
done
ls -A
