#!/bin/sh
":" /* # The shell starts node with the lines below, which node reads as a comment.
if [ "$1" = serve ]; then
  # Returns the memory of large bodies to the system.
  export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-65536}"
  # A large young generation makes garbage cheaper to collect. Commands do without, because it costs memory.
  exec node --expose-gc --max-semi-space-size=64 "$0" "$@"
fi
exec node "$0" "$@"
*/
import "MAIN"
