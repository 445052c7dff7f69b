// SPDX-License-Identifier: MIT
import java.io.File;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Scanner;
import java.util.Set;
import java.util.function.IntConsumer;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Takes native memory at lines that it says itself: "STACK JavaLines.direct:40|JavaLines.round:71|...", each once, its own
 * frames only. With a class file it makes classes Storm0000 ... of it, each of the same shape, and has them unloaded: StormN
 * asks for direct buffers of 8000 + 8 N bytes and no other does.
 */
public class JavaLines {
    static final Set<String> said = new HashSet<>();
    static final List<ByteBuffer> kept = new ArrayList<>();
    static final int STORMS = 10000;

    static void say() {
        StringBuilder text = new StringBuilder();
        for (StackTraceElement e : new Throwable().getStackTrace())
            if (e.getClassName().startsWith("JavaLines") && !e.getMethodName().equals("say"))
                text.append(text.length() == 0 ? "" : "|").append(e.getClassName() + "." + e.getMethodName() + ":" + e.getLineNumber());
        if (said.add(text.toString()))
            System.out.println("STACK " + text);
    }

    static void keep(ByteBuffer b) {
        kept.add(b);
        if (kept.size() > 64)
            kept.remove(0);
    }

    static void direct(int n) {
        say(); ByteBuffer b = ByteBuffer.allocateDirect(10000 + n);
        keep(b);
    }

    static void pack() {
        say(); Deflater d = new Deflater(1);
        d.end();
    }

    static void unpack(int n) {
        if (n > 0) {
            unpack(n - 1);
            return;
        }
        say(); Inflater i = new Inflater();
        i.end();
    }

    static final class Made {
        final ByteBuffer buffer;

        Made(int n) {
            say(); buffer = ByteBuffer.allocateDirect(20000 + n);
        }
    }

    static void each(int n, IntConsumer f) {
        f.accept(n);
    }

    static void round(int n) throws Exception {
        direct(n % 7);
        pack();
        unpack(n % 3);
        keep(new Made(n % 5).buffer);
        each(n, JavaLines::direct);
        each(n, k -> { say(); keep(ByteBuffer.allocateDirect(30000 + k % 3)); });
        Method m = JavaLines.class.getDeclaredMethod("pack");
        m.invoke(null);
    }

    // ---- classes that come and go ----

    static final class One extends ClassLoader {
        final byte[] bytes;
        final String name;

        One(byte[] shape, String prefix, int n) {
            String digits = String.format("%04d", n);
            bytes = shape.clone();
            name = prefix + digits;
            for (int i = 0; i + 4 <= bytes.length; i++)
                if (bytes[i] == '0' && bytes[i + 1] == '0' && bytes[i + 2] == '0' && bytes[i + 3] == '0')
                    for (int k = 0; k < 4; k++)
                        bytes[i + k] = (byte) digits.charAt(k);
        }

        Class<?> make() {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    // So many classes at a time, for so long; then they are unloaded, and others have their place.
    static void storm(byte[] shape, int n, long ms) throws Exception {
        Class<?>[] classes = new Class<?>[8];
        for (int i = 0; i < classes.length; i++)
            classes[i] = new One(shape, "Storm", (8 * n + i) % STORMS).make();
        long end = System.nanoTime() + ms * 1000000;
        do {
            for (int i = 0; i < classes.length; i++)
                run(classes[i], i == 0 ? 600 : 3);
        } while (System.nanoTime() < end && !Thread.currentThread().isInterrupted());
        classes = null;
        System.gc();
    }

    static void run(Class<?> c, int times) throws Exception {
        c.getDeclaredMethod("run" + c.getName().substring(5), int.class).invoke(null, times);
    }

    public static void main(String[] arguments) throws Exception {
        final boolean storms = arguments.length > 0;
        final long ms = storms ? Long.parseLong(arguments[1]) : 0;
        final byte[] shape = storms ? Files.readAllBytes(new File(arguments[0]).toPath()) : null;
        final long[] rounds = new long[1];
        final Class<?>[] held = new Class<?>[storms ? Integer.parseInt(arguments[2]) : 0];
        for (int i = 0; i < held.length; i++)
            held[i] = new One(shape, "Storm", i % STORMS).make();
        Thread worker = new Thread(() -> {
            try {
                for (int n = 0; !Thread.interrupted(); n++, rounds[0]++)
                    if (storms)
                        storm(shape, n, ms);
                    else
                        round(n);
            } catch (Exception e) {
                throw new Error(e);
            }
        });
        worker.start();
        System.out.println("PID " + ProcessHandle.current().pid());
        System.out.println("READY");
        new Scanner(System.in).nextLine();
        worker.interrupt();
        worker.join();
        System.out.println("OK " + rounds[0] + " beside " + held.length);
    }
}
