// SPDX-License-Identifier: MIT
// A JVM that does what a profiler could disturb: it compiles and takes compiled code back, loads and unloads classes, makes children, and
// computes what it can check. The argument is Storm0000.class. A line WRONG for each wrong answer; the line "end" on its input ends it.
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Scanner;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class JavaBusy {
    interface Work {
        boolean round(int n) throws Exception;
    }

    static volatile boolean ended;

    // Compressed and back, through memory that is not Java's.
    static boolean packed(int n) throws Exception {
        byte[] in = new byte[1 + n * 131 % 20000], packed = new byte[30000], out = new byte[in.length + 1];
        new Random(n).nextBytes(in);
        Deflater deflater = new Deflater(n % 10);
        deflater.setInput(in);
        deflater.finish();
        int size = deflater.deflate(packed);
        deflater.end();
        Inflater inflater = new Inflater();
        inflater.setInput(packed, 0, size);
        int back = inflater.inflate(out);
        inflater.end();
        return back == in.length && Arrays.equals(in, Arrays.copyOf(out, back));
    }

    static boolean buffers(int n) {
        long sum = 0;
        for (int i = 0; i < 50; i++) {
            ByteBuffer b = ByteBuffer.allocateDirect(64 + (n + i) % 5000);
            b.putLong(8 * (i % 8), n);
            sum += b.getLong(8 * (i % 8));
        }
        return sum == 50L * n;
    }

    interface Shape {
        int area(int n);
    }

    static int areas(Shape shape, int times) {
        int sum = 0;
        for (int i = 0; i < times; i++)
            sum += shape.area(i);
        return sum;
    }

    // A call whose receiver is for long of one class only, and then of another: what was compiled for the first is taken back.
    static boolean shapes(int n) {
        final int k = n % 7;
        Shape[] all = {i -> i + k, i -> i * k, i -> i - k, i -> k};
        int times = 20000, sum = times * (times - 1) / 2;
        int[] right = {sum + times * k, sum * k, sum - times * k, times * k};
        return areas(all[n / 5 % 4], times) == right[n / 5 % 4];
    }

    static boolean children(int n) throws Exception {
        Thread.sleep(40);
        return new ProcessBuilder("sh", "-c", "exit " + n % 100).start().waitFor() == n % 100;
    }

    static Thread start(String name, Work work) {
        Thread thread = new Thread(() -> {
            for (int n = 0; !ended; n++) {
                try {
                    if (!work.round(n))
                        System.out.println("WRONG " + name + " " + n);
                } catch (Exception e) {
                    System.out.println("WRONG " + name + " " + n + ": " + e + ", " + e.getCause());
                }
            }
        });
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        final byte[] shape = Files.readAllBytes(new File(arguments[0]).toPath());
        List<Thread> threads = new ArrayList<>();
        threads.add(start("packed", JavaBusy::packed));
        threads.add(start("buffers", JavaBusy::buffers));
        threads.add(start("shapes", JavaBusy::shapes));
        threads.add(start("children", JavaBusy::children));
        threads.add(start("classes", n -> {
            JavaLines.storm(shape, n, 50);
            return true;
        }));
        System.out.println("PID " + ProcessHandle.current().pid());
        System.out.println("READY");
        new Scanner(System.in).nextLine();
        ended = true;
        for (Thread thread : threads)
            thread.join();
        System.out.println("OK " + threads.size() + " threads");
    }
}
