// SPDX-License-Identifier: MIT
import java.lang.foreign.Arena;

/** What JavaAmounts takes by java.lang.foreign. */
public class JavaArena {
    static final Arena arena = Arena.ofShared();

    static Long arena(int n) {
        long bytes = 2000 + 16 * (n % 1000);
        JavaAmounts.kept.add(arena.allocate(bytes, 8)); // takes
        return bytes;
    }
}
