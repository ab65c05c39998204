spoor record --stack-size 4K true
