spoor record --call-graph dwarf --stack-size 64K true
