#!/bin/sh
# secure.sh BUILD-FOLDER: a program with rights that its user does not have (AT_SECURE) ignores the environment and has no diagnostics server: it does not
# wait for the port that DOTNET_DiagnosticPorts names, and binds no socket.
set -eu
build=$(realpath "$1")
[ "$(id -u)" = 0 ] || {
	echo "skipped: only root can make a program of another user"
	exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir -m 1777 "$folder/sockets"

# sockets MODE PORT: prints the number of sockets while the program runs.
sockets() {
	install -m "$1" -o nobody "$build/examples/server" "$folder/server"
	TMPDIR=$folder/sockets DOTNET_DiagnosticPorts=$2 timeout 20 "$folder/server" 2 >"$folder/out" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		if grep -q ready "$folder/out"; then
			break
		fi
		sleep 0.05
	done
	find "$folder/sockets" -type s | wc -l
	# The leak sanitizer uses ptrace, which is not permitted for a program with additional rights.
	wait $server || grep -q 'LeakSanitizer does not work under ptrace' "$folder/out" || echo "it ended with $?: $(cat "$folder/out")"
}

plain=$(sockets 755 '')
[ "$plain" = 1 ] || {
	echo "FAILED: without foreign rights there should be one socket: $plain"
	exit 1
}
secure=$(sockets 4755 "$folder/nobody-listens-here")
[ "$secure" = 0 ] || {
	echo "FAILED: with foreign rights there should be none, and no waiting: $secure"
	exit 1
}
