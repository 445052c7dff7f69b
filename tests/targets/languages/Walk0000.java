// SPDX-License-Identifier: MIT
/** The shape of the classes that JavaWalks makes and lets go: its digits are replaced. */
public class Walk0000 {
    final int depth;

    Walk0000(int depth) {
        this.depth = depth;
        JavaWalks.ask();
    }

    int inner0000(int n) {
        if (n > 0)
            return inner0000(n - 1) + 1;
        JavaWalks.ask();
        return 0;
    }

    public static void run0000(int times) {
        for (int i = 0; i < times; i++)
            if (new Walk0000(i % 3).inner0000(i % 3) != i % 3)
                throw new Error("lost count");
    }
}
