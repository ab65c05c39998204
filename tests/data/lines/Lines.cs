// Source of tests/fuzz/corpus/portable_pdb: lines.pdb beside the assembly, embedded.dll with the same inside (DebugType=embedded).
using System;

public static class Lines
{
    public static int Sum(int n)
    {
        int sum = 0;
        for (int i = 0; i < n; i++)
        {
            sum += i;
        }
        return sum;
    }

    public static void Hidden(Action body)
    {
        try
        {
            body();
        }
        finally
        {
#line 500 "Other.cs"
            Console.WriteLine("done");
#line default
        }
    }
}
