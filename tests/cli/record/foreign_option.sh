spoor record --tree
