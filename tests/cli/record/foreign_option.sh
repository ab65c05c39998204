spoor record --top 5
