# What there is differs between machines; which questions are asked does not.
spoor doctor --json | tr '{},' '\n' | sed -n 's/^"name":"\([a-z_]*\)"$/\1/p'
