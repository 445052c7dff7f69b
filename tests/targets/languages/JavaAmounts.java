// SPDX-License-Identifier: MIT
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.zip.Deflater;
import java.util.zip.Inflater;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Keeps amounts of native memory that it knows, each kind from one line, which ends in the comment "takes". Arguments: its library, a folder for its
 * files. The line "go" has it take them, and it says of each kind how many objects and, where Java tells, bytes these are; "end" ends it.
 */
public class JavaAmounts {
    static final List<Object> kept = new ArrayList<>();
    static String folder;

    static native long take(long bytes);

    interface Kind {
        long keep(int n) throws Exception; // the bytes, 0: the object alone knows
    }

    static void say(String name, int count, Kind kind) throws Exception {
        long bytes = 0;
        for (int n = 0; n < count; n++)
            bytes += kind.keep(n);
        System.out.println("TRUTH {\"function\":\"" + name + "\",\"objects\":" + count + ",\"bytes\":" + bytes + "}");
    }

    static long direct(int n) {
        int bytes = 4096 + 8 * (n % 3000);
        kept.add(ByteBuffer.allocateDirect(bytes)); // takes
        return bytes;
    }

    static long library(int n) {
        long bytes = 3000 + n % 20000;
        kept.add(take(bytes)); // takes
        return bytes;
    }

    static long deflater(int n) {
        kept.add(new Deflater(6)); // takes
        return 0;
    }

    static long inflater(int n) {
        kept.add(new Inflater()); // takes
        return 0;
    }

    static long zip(int n) throws Exception {
        ZipFile file = new ZipFile(folder + "/amounts.zip");
        InputStream stream = file.getInputStream(file.getEntry("entry")); // takes
        kept.add(file);
        kept.add(stream);
        return 0;
    }

    // A file's pages, no memory.
    static long mapped(int n) throws Exception {
        int bytes = 60000 + 701 * (n % 300);
        try (RandomAccessFile file = new RandomAccessFile(folder + "/mapped", "rw")) {
            kept.add(file.getChannel().map(FileChannel.MapMode.READ_WRITE, 4096 * (n % 10), bytes)); // takes
        }
        return bytes;
    }

    // The same, and dropped at once, as a collection would.
    static long unmapped(int n) throws Exception {
        int bytes = 500000 + n;
        try (RandomAccessFile file = new RandomAccessFile(folder + "/mapped", "rw")) {
            ByteBuffer buffer = file.getChannel().map(FileChannel.MapMode.PRIVATE, 0, bytes); // takes
            Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
            unsafe.setAccessible(true);
            unsafe.getType().getMethod("invokeCleaner", ByteBuffer.class).invoke(unsafe.get(null), buffer);
        }
        return bytes;
    }

    static void makeZip() throws Exception {
        try (ZipOutputStream out = new ZipOutputStream(new FileOutputStream(new File(folder, "amounts.zip")))) {
            out.putNextEntry(new ZipEntry("entry"));
            out.write(new byte[100000]);
            out.closeEntry();
        }
    }

    // Needs JDK 22: compiled where there is one.
    static Kind arena() {
        try {
            Method method = Class.forName("JavaArena").getDeclaredMethod("arena", int.class);
            return n -> (Long) method.invoke(null, n);
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    static void all(int times) throws Exception {
        say("JavaAmounts.direct", 20 * times, JavaAmounts::direct);
        say("JavaAmounts.library", 30 * times, JavaAmounts::library);
        say("JavaAmounts.deflater", times, JavaAmounts::deflater);
        say("JavaAmounts.inflater", 10 * times, JavaAmounts::inflater);
        say("JavaAmounts.zip", 10 * times, JavaAmounts::zip);
        say("JavaAmounts.mapped", 3 * times, JavaAmounts::mapped);
        say("JavaAmounts.unmapped", times, JavaAmounts::unmapped);
        Kind arena = arena();
        if (arena != null)
            say("JavaArena.arena", 20 * times, arena);
        System.out.println("TRUTH-END");
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        folder = arguments[1];
        makeZip();
        all(2); // what the JVM makes at the first time
        System.out.println("PID " + ProcessHandle.current().pid());
        System.out.println("READY");
        Scanner in = new Scanner(System.in);
        in.nextLine();
        all(100);
        in.nextLine();
        System.out.println("OK " + kept.size());
    }
}
