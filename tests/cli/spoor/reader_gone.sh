{ spoor help help; echo $? >code; } | true; cat code
