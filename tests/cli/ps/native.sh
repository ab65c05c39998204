# A native program, this shell: its columns, without the numbers that differ from run to run.
spoor ps -p $$ | sed 's/^ *[0-9]*/PID/; s/ *[0-9.]* [smhd] *[0-9.]* [kM]B/ UP MEMORY/' | tr -s ' ' | cut -d" " -f6,7
