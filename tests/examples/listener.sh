#!/bin/sh
# listener.sh BUILD-FOLDER: examples/listener prints each of its events with its fields.
set -eu
"$1/examples/listener" | diff -u "$(dirname "$0")/listener.out" -
