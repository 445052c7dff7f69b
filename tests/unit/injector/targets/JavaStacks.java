// SPDX-License-Identifier: MIT
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;
import java.util.zip.Deflater;

/** Threads that rest in frames of each kind: interpreted, compiled, inlined, native, lambdas, reflection, constructors. */
public class JavaStacks {
    static final Object never = new Object();
    static final AtomicLong sum = new AtomicLong();
    static final List<Thread> threads = new ArrayList<>();
    static volatile boolean rest;

    static void waitForever() {
        synchronized (never) {
            while (true) {
                try {
                    never.wait();
                } catch (InterruptedException e) {
                    throw new Error(e);
                }
            }
        }
    }

    static int deep(int n) {
        if (n == 0)
            waitForever();
        return deep(n - 1) + 1;
    }

    // Called so often that it is compiled, with what it calls inlined; at last it rests in there.
    static int hot(int n) {
        return inner(n) + 1;
    }

    static int inner(int n) {
        if ((n & 0xfff) == 0xfff)
            pause();
        return n * 3 + (n >> 2);
    }

    static void pause() {
        if (rest)
            LockSupport.park();
        else
            LockSupport.parkNanos(1);
    }

    static void burn() {
        for (int i = 0;; i++)
            sum.addAndGet(hot(i));
    }

    static final class Made {
        final int value;

        Made(IntUnaryOperator f) {
            value = f.applyAsInt(7);
        }
    }

    // Its initialiser is called by the VM, on top of other Java frames.
    static final class Initialised {
        static final int value = deep(3);
    }

    static void lambdas() {
        new Made(x -> List.of(1, 2, 3).stream().mapToInt(y -> deep(y)).sum() + x);
    }

    static void reflected() {
        try {
            JavaStacks.class.getDeclaredMethod("deep", int.class).invoke(null, 2);
        } catch (ReflectiveOperationException e) {
            throw new Error(e);
        }
    }

    // Native code that is called over and over, and mostly runs there.
    static void deflates() {
        byte[] data = new byte[1 << 20], out = new byte[1 << 20];
        while (!rest) {
            Deflater d = new Deflater(9);
            d.setInput(data);
            d.finish();
            sum.addAndGet(d.deflate(out));
            d.end();
        }
        waitForever();
    }

    static void start(Runnable work) {
        Thread t = new Thread(work);
        t.setDaemon(true);
        threads.add(t);
        t.start();
    }

    public static void main(String[] arguments) throws Exception {
        start(() -> deep(40));
        for (int i = 0; i < 3; i++)
            start(JavaStacks::burn);
        start(JavaStacks::lambdas);
        start(JavaStacks::reflected);
        start(JavaStacks::deflates);
        start(() -> System.out.println(Initialised.value));
        while (sum.get() == 0)
            Thread.sleep(300);
        rest = true;
        for (Thread t : threads)
            while (t.getState() != Thread.State.WAITING)
                Thread.sleep(10);
        System.out.println("ready");
        while (System.in.read() >= 0)
            System.out.println("here");
        System.exit(0);
    }
}
