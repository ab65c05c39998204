# A file of another format is an error without output. A truncated file is shown up to the cut. A full disk is an error; a reader that closes the pipe is not.
file=$data/nettrace/runtime-v4.nettrace
printf 'this is no recording, whatever its name says' >x.nettrace
spoor events x.nettrace || echo "exit $?"
: >empty.nettrace
spoor events empty.nettrace || echo "exit $?"
spoor events nowhere.nettrace || echo "exit $?"
head -c 16000 "$file" >torn.nettrace
spoor events torn.nettrace >torn.txt
spoor events "$file" | head -n "$(wc -l <torn.txt)" | cmp - torn.txt && [ -s torn.txt ] && echo "as far as it goes"
spoor events torn.nettrace --summary | head -n 1
spoor events "$file" | head -n 1 | cut -c1-15
spoor events "$file" >/dev/full || echo "exit $?"
