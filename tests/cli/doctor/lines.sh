# Each line: what, and yes, no or part.
spoor doctor | grep -cE '  (yes|no|part)( |$)'
