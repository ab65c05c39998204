spoor record --duraton 5s
