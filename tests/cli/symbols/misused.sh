spoor symbols || echo "exit $?"
spoor symbols list || echo "exit $?"
spoor symbols list a b || echo "exit $?"
spoor symbols list nothing-there || echo "exit $?"
spoor symbols list x --clean || echo "exit $?"
export SPOOR_SYMBOL_CACHE=$PWD/cache
spoor symbols import nothing-there || echo "exit $?"
SPOOR_SYMBOL_CACHE=relative spoor symbols cache || echo "exit $?"
spoor symbols cache --unused-days 0 || echo "exit $?"
