# A folder with a CTF trace: its events with their types, and clear errors.
export LC_ALL=C.UTF-8
spoor events "$data/ctf/lttng" | head -n 7
spoor events "$data/ctf/lttng" --summary --json
spoor events "$data/ctf/lttng" --json --event refund | head -n 1
cp -r "$data/ctf/lttng" cut
dd if="$data/ctf/lttng/c_1" of=cut/c_1 bs=1 count=4000 2>/dev/null
rm cut/c_0
! spoor events cut || exit 9
echo 'event { name = "a:b"; id = 1; fields := struct { unknown_t x; }; };' >cut/metadata
! spoor events cut || exit 9
mkdir none
! spoor events none || exit 9
