// SPDX-License-Identifier: MIT
import java.io.File;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Calls native methods, which call malloc, from stacks of as many shapes as one can think of; java_walks.c, its agent, writes down what the JVM says
 * each of the stacks is. Arguments: the library of the agent, how many walks, a class file of Walk0000 or "-", milliseconds between
 * deoptimisations of everything or 0 (needs -XX:+WhiteBoxAPI). It begins with the line "go", says DONE, and ends with the line "end".
 */
public class JavaWalks {
    public static native void ask();
    native int held(byte[] bytes);
    static native double many(int a, double b, long c, Object d, float e, long f, long g, double h, int i, Object j, long k);
    static native void back(Runnable runnable);
    static native void begin(int count);
    static native int count();
    static native void finish();

    interface Work {
        int go(int n) throws Throwable;
    }

    static final AtomicLong rounds = new AtomicLong();
    static volatile boolean ended;

    // ---- shapes ----

    static int deep(int n) {
        if (n == 0) {
            ask();
            return 0;
        }
        return n % 3 == 0 ? odd(n - 1) + 1 : deep(n - 1) + 1;
    }

    static int odd(int n) {
        int made = n * 3; ask();
        if (n == 0) return 0;
        return deep(n - 1) + 1 + made - n * 3;
    }

    // A receiver of which there are many classes, and a default method.
    interface Shape {
        int area(int n);
        default int twice(int n) {
            return area(n) + area(n);
        }
    }
    static final class Square implements Shape {
        public int area(int n) { ask(); return n * n; }
    }
    static class Circle implements Shape {
        public int area(int n) { return around(n) * 3; }
        int around(int n) { ask(); return n; }
    }
    static final class Oval extends Circle {
        @Override int around(int n) { return super.around(n) + 1; }
    }
    static final Shape[] SHAPES = {new Square(), new Circle(), new Oval(), n -> { ask(); return n; }, n -> deep(n % 4)};

    static int shapes(int n) {
        int sum = 0;
        for (int i = 0; i < 3; i++)
            sum += SHAPES[(n + i) % SHAPES.length].twice(i);
        return sum;
    }

    static int streams(int n) {
        return List.of(1, 2, 3).stream().filter(i -> i != n % 4).mapToInt(i -> deep(i)).sum()
            + (n % 16 == 0 ? IntStream.range(0, 8).parallel().map(JavaWalks::deep).sum() : 0);
    }

    static int thrown(int n) throws Exception {
        try {
            if (n % 2 == 0)
                throw new IllegalStateException("of " + n);
            ask();
        } catch (IllegalStateException e) {
            ask();
            if (n % 4 == 0)
                return deep(2);
        } finally {
            ask();
        }
        return n % 3 == 0 ? far(5) : 1;
    }

    static int far(int n) {
        try {
            return leaves(n);
        } catch (ArithmeticException e) {
            ask();
            return n;
        }
    }

    static int leaves(int n) {
        if (n == 0) {
            ask();
            return 1 / n;
        }
        return leaves(n - 1) + 1;
    }

    static final Object monitor = new Object();

    static synchronized int locked(int n) {
        ask();
        synchronized (monitor) {
            return n > 0 ? locked(n - 1) : deep(1);
        }
    }

    static <T extends Comparable<T>> int sorted(T[] values) {
        T[] mine = values.clone();
        Arrays.sort(mine, (a, b) -> { ask(); return b.compareTo(a); });
        Map<T, Integer> map = new TreeMap<>((a, b) -> { ask(); return a.compareTo(b); });
        for (T value : mine)
            map.put(value, 1);
        return map.size();
    }

    static int mapped(int n) {
        Map<Integer, Integer> map = new HashMap<>();
        return map.computeIfAbsent(n, k -> deep(k % 5)) + map.merge(n, 1, (a, b) -> { ask(); return a + b; });
    }

    static final class Text {
        @Override public String toString() { ask(); return "text"; }
        @Override public int hashCode() { ask(); return 7; }
        @Override public boolean equals(Object other) { ask(); return this == other; }
    }

    static int texts(int n) {
        Text text = new Text();
        Map<Object, Integer> map = new HashMap<>();
        map.put(text, n);
        map.put(new Text(), n + 1);
        return ("a " + text + n + text).length() + map.get(text);
    }

    static final MethodHandle DEEP, BOUND;
    static final Method METHOD;
    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            DEEP = lookup.findStatic(JavaWalks.class, "deep", MethodType.methodType(int.class, int.class));
            BOUND = MethodHandles.filterReturnValue(MethodHandles.insertArguments(DEEP, 0, 3), DEEP);
            METHOD = JavaWalks.class.getDeclaredMethod("deep", int.class);
        } catch (ReflectiveOperationException e) {
            throw new Error(e);
        }
    }

    static int handles(int n) throws Throwable {
        int sum = (int) DEEP.invokeExact(n % 3) + (int) BOUND.invoke();
        return sum + (Integer) METHOD.invoke(null, n % 4) + (Integer) DEEP.invoke((Object) (n % 2));
    }

    static int proxied(int n) {
        Shape shape = (Shape) Proxy.newProxyInstance(Shape.class.getClassLoader(), new Class<?>[] {Shape.class}, (self, method, a) -> { ask(); return deep((Integer) a[0]); });
        return shape.area(n % 4) + shape.twice(1);
    }

    // A loop that is compiled while it runs.
    static int loops(int n) {
        int sum = 0;
        for (int i = 0; i < 3000; i++) {
            sum += i ^ n;
            if (i % 1500 == 700)
                ask();
        }
        ask();
        return sum;
    }

    static int arguments(int n) {
        return (int) many(n, 1.5, 2, "x", 3f, 4, 5, 6.0, 7, "y", 8) + wide(n, n, 1.0, 2f, 3, 4.0, 5, 6, 7, 8);
    }

    static int wide(long a, int b, double c, float d, long e, double f, int g, long h, int i, int j) {
        ask();
        return b > 0 && b % 2 == 0 ? wide(a, b / 2, c, d, e, f, g, h, i, j) : (int) (a + b + c + d + e + f + g + h + i + j);
    }

    static int backs(int n) {
        int[] sum = new int[1];
        back(() -> sum[0] += deep(n % 3));
        back(new Runnable() {
            public void run() {
                if (n % 2 == 0)
                    back(() -> ask());
                sum[0] += deep(1);
            }
        });
        return sum[0];
    }

    static final byte[] bytes = new byte[100];

    static int critical(int n) {
        return new JavaWalks().held(bytes) + new JavaWalks().held(bytes);
    }

    static final class Nest<T> {
        final T value;
        final int more;

        Nest(T value, Function<T, Integer> function, int n) {
            this.value = value;
            ask();
            more = function.apply(value) + (n > 0 ? new Nest<>("x" + n, String::length, n - 1).more : deep(2));
        }
    }

    static int nested(int n) {
        IntUnaryOperator operator = i -> new Nest<>(i, k -> deep(k % 3), i % 4).more;
        return operator.andThen(i -> { ask(); return i + 1; }).applyAsInt(n % 8);
    }

    static final Work[] WORKS = {n -> deep(n % 40), JavaWalks::shapes, JavaWalks::streams, JavaWalks::thrown, n -> locked(n % 3),
        n -> sorted(new Integer[] {3, n, 1}), n -> sorted(new String[] {"c", "a" + n, "b"}), JavaWalks::mapped, JavaWalks::texts, JavaWalks::handles,
        JavaWalks::proxied, JavaWalks::loops, JavaWalks::arguments, JavaWalks::backs, JavaWalks::critical, JavaWalks::nested};

    static void work(int seed) {
        Random random = new Random(seed);
        try {
            for (long sum = 0; !ended; rounds.incrementAndGet())
                sum += WORKS[random.nextInt(WORKS.length)].go(random.nextInt(1000));
        } catch (Throwable e) {
            System.out.println("WRONG " + e);
            e.printStackTrace(System.out);
        }
    }

    // ---- what happens beside them ----

    static void classes(byte[] shape) {
        try {
            for (int n = 0; !ended; n++) {
                Class<?>[] made = new Class<?>[4];
                for (int i = 0; i < made.length; i++)
                    made[i] = new JavaLines.One(shape, "Walk", (4 * n + i) % 10000).make();
                for (int times = 0; times < 40 && !ended; times++, Thread.sleep(30))
                    for (Class<?> one : made)
                        one.getDeclaredMethod("run" + one.getName().substring(4), int.class).invoke(null, 200);
                made = null;
                System.gc();
            }
        } catch (Exception e) {
            System.out.println("WRONG " + e);
            e.printStackTrace(System.out);
        }
    }

    static void deoptimise(long ms) {
        try {
            Class<?> box = Class.forName("jdk.test.whitebox.WhiteBox");
            Object one = box.getDeclaredConstructor().newInstance();
            Method all = box.getMethod("deoptimizeAll");
            for (; !ended; Thread.sleep(ms))
                all.invoke(one);
        } catch (Exception e) {
            System.out.println("WRONG " + e);
            e.printStackTrace(System.out);
        }
    }

    static Thread start(Runnable run) {
        Thread thread = new Thread(run);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        final byte[] shape = arguments[2].equals("-") ? null : Files.readAllBytes(new File(arguments[2]).toPath());
        final long ms = Long.parseLong(arguments[3]);
        Thread[] threads = {start(() -> work(1)), start(() -> work(2)), start(() -> { if (shape != null) classes(shape); }), start(() -> { if (ms > 0) deoptimise(ms); })};
        Thread.sleep(2000); // what is called often is compiled meanwhile
        System.out.println("PID " + ProcessHandle.current().pid());
        System.out.println("READY");
        Scanner in = new Scanner(System.in);
        in.nextLine();
        begin(Integer.parseInt(arguments[1]));
        while (count() < Integer.parseInt(arguments[1]))
            Thread.sleep(20);
        finish();
        System.out.println("DONE");
        in.nextLine();
        ended = true;
        for (Thread thread : threads)
            thread.join();
        finish();
        System.out.println("OK " + rounds);
    }
}
