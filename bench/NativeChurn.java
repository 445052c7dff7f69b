// SPDX-License-Identifier: MIT
// W7: JVM native allocations. Usage: java NativeChurn <seconds> [bb|unsafe|zip|mix]  - same output lines as bench.h.
// 1 op = mix: 8 Unsafe.allocateMemory/freeMemory on a 20k live set (64..4096 B) + 1 ByteBuffer.allocateDirect(1k..32k)+invokeCleaner
//       + every 8th op: one new Deflater/Inflater round (new, inflate 4 KiB, end).
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import java.util.zip.*;
public class NativeChurn {
    static final sun.misc.Unsafe U;
    static { try { var f = sun.misc.Unsafe.class.getDeclaredField("theUnsafe"); f.setAccessible(true); U = (sun.misc.Unsafe) f.get(null); } catch (Exception e) { throw new Error(e); } }
    static final long[] live = new long[20000];
    static byte[] comp = new byte[8192]; static int clen; static final byte[] out = new byte[4096];
    static long sink;
    static void unsafeOp(SplittableRandom r) { int i = r.nextInt(live.length); if (live[i] != 0) U.freeMemory(live[i]);
        long p = U.allocateMemory(64 << r.nextInt(7)); U.putLong(p, i); live[i] = p; }
    static void bbOp(SplittableRandom r) { ByteBuffer b = ByteBuffer.allocateDirect(1024 << r.nextInt(6)); b.putLong(0, 1); sink += b.getLong(0); U.invokeCleaner(b); }
    static void zipOp() throws Exception { Inflater f = new Inflater(); f.setInput(comp, 0, clen); sink += f.inflate(out); f.end(); }
    static int level(int d, int mode, SplittableRandom r, long op) throws Exception { if (d > 0) return level(d - 1, mode, r, op) + 1;
        switch (mode) { case 0: bbOp(r); break; case 1: unsafeOp(r); break; case 2: zipOp(); break;
          default: for (int i = 0; i < 8; i++) unsafeOp(r); bbOp(r); if ((op & 7) == 0) zipOp(); } return 0; }
    /* 16 ops for each line that a client sends, for got_switch.c: NativeChurn 0 mix serve PORT. */
    static void serve(int port, int mode, SplittableRandom r) throws Exception { byte[] line = new byte[64]; long op = 0;
        try (var listener = new java.net.ServerSocket(port, 5, java.net.InetAddress.getLoopbackAddress())) { for (;;) try (var client = listener.accept()) {
            client.setTcpNoDelay(true); while (client.getInputStream().read(line) > 0) { for (int i = 0; i < 16; i++) sink += level(12, mode, r, op++); client.getOutputStream().write('\n'); } } } }
    public static void main(String[] a) throws Exception {
        double dur = a.length > 0 ? Double.parseDouble(a[0]) : 10; int mode = a.length > 1 ? switch (a[1]) { case "bb" -> 0; case "unsafe" -> 1; case "zip" -> 2; default -> 3; } : 3;
        SplittableRandom r = new SplittableRandom(1); byte[] src = new byte[4096]; for (int i = 0; i < src.length; i++) src[i] = (byte) (r.nextInt(16) + 'a');
        Deflater d = new Deflater(); d.setInput(src); d.finish(); clen = d.deflate(comp); d.end();
        System.out.println("PID " + ProcessHandle.current().pid());
        if (a.length > 2 && a[2].equals("serve")) serve(Integer.parseInt(a[3]), mode, r);
        long t0 = System.nanoTime(), tl = t0, last = t0; long n = 0, total = 0; double gap = 0; var os = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        long cl = os.getProcessCpuTime();
        for (;;) {
            for (int i = 0; i < 16; i++) sink += level(12, mode, r, total + i);
            n += 16; total += 16; long t = System.nanoTime(); double g = (t - last) / 1e3; last = t; if (g > gap) gap = g;
            if (t - tl >= 500_000_000L) { long c = os.getProcessCpuTime();
                System.out.printf("T %.3f %.4f %d %.1f %.4f %.0f%n", (t - t0) / 1e9, (t - tl) / 1e9, n, n / ((t - tl) / 1e9), (c - cl) / 1e9, gap); tl = t; cl = c; n = 0; gap = 0; last = System.nanoTime(); }
            if ((t - t0) / 1e9 >= dur) break;
        }
        double s = (System.nanoTime() - t0) / 1e9; System.out.printf("FINAL %.1f %d %.3f%n", total / s, total, s);
    }
}
