// SPDX-License-Identifier: MIT
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Scanner;
import java.util.zip.Deflater;

/** Threads take native memory all the time; the line "exit" ends the JVM while they do, with a hook that does so, too, "crash" by a wrong address. */
public class JavaMoments {
    static volatile long sum;

    static void work() {
        for (;;) {
            sum += ByteBuffer.allocateDirect(1000).capacity();
            Deflater deflater = new Deflater();
            deflater.end();
        }
    }

    static void crash() throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        ((sun.misc.Unsafe) field.get(null)).putAddress(8, 1);
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 3; i++)
            new Thread(JavaMoments::work).start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            for (int i = 0; i < 200; i++)
                sum += ByteBuffer.allocateDirect(10000).capacity();
            System.out.println("OK hook");
        }));
        System.out.println("PID " + ProcessHandle.current().pid());
        System.out.println("READY");
        if (new Scanner(System.in).nextLine().equals("crash"))
            crash();
        System.exit(7);
    }
}
