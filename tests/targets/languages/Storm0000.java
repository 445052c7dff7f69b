// SPDX-License-Identifier: MIT
import java.nio.ByteBuffer;

/** The shape of all classes that JavaLines makes: its digits are replaced, and tell how large its buffers are. */
public class Storm0000 {
    static ByteBuffer last;

    static int size0000() {
        String digits = "0000";
        return 8000 + 8 * Integer.parseInt(digits);
    }

    static void inner0000(int size) {
        last = ByteBuffer.allocateDirect(size);
    }

    public static void run0000(int times) {
        final int size = size0000();
        for (int i = 0; i < times; i++)
            inner0000(size);
    }
}
