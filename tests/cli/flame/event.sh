# Events of one name in place of samples, as lines and as a picture; an unknown name, and events without stacks.
cp "$data/nettrace/runtime-v4.nettrace" x.nettrace
spoor flame x.nettrace --event 'Thread/S*' -f folded -o - | awk '{ sum += $NF } END { print sum, "events" }'
spoor events x.nettrace --event 'Thread/S*' | grep -c Sample
spoor flame x.nettrace --event Thread/Sample -o x.svg && grep -c "units:\[\['events',1\]\]" x.svg
spoor flame "$data/nettrace/runtime-events-v6.nettrace" --event GC/Start -f folded -o -
spoor flame x.nettrace --event Thread/Sampel -f folded -o - || echo "exit $?"
spoor flame x.nettrace --event GC/Start --alloc || echo "exit $?"
