# Each line names a capability and has the answer yes, no or part.
spoor doctor | grep -cE '  (yes|no|part)( |$)'
