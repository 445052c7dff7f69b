// SPDX-License-Identifier: MIT
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Scanner;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Takes native memory from interpreted and compiled code, through lambdas, reflection and initialisers, and checks its own results. */
public class JavaWork {
    static final byte[] data = new byte[500];
    static final List<ByteBuffer> kept = new ArrayList<>();
    static long rounds;

    static int deep(int n) {
        return n == 0 ? packed() : deep(n - 1) + 1;
    }

    static int packed() {
        byte[] out = new byte[600], back = new byte[500];
        Deflater d = new Deflater(1);
        d.setInput(data);
        d.finish();
        int bytes = d.deflate(out);
        d.end();
        Inflater i = new Inflater();
        i.setInput(out, 0, bytes);
        try {
            if (i.inflate(back) != back.length || !Arrays.equals(back, data))
                throw new Error("inflated to something else");
        } catch (java.util.zip.DataFormatException e) {
            throw new Error(e);
        } finally {
            i.end();
        }
        return 0;
    }

    static void round() throws Exception {
        if (deep(20) != 20)
            throw new Error("lost count");
        Method m = JavaWork.class.getDeclaredMethod("deep", int.class);
        if ((Integer) m.invoke(null, 3) != 3 || List.of(1, 2).stream().mapToInt(JavaWork::deep).sum() != 3)
            throw new Error("lost count");
        kept.add(ByteBuffer.allocateDirect(40000));
        if (kept.size() > 50)
            kept.remove(0);
        rounds++;
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < data.length; i++)
            data[i] = (byte) (i * i / 7);
        Thread worker = new Thread(() -> {
            try {
                while (!Thread.interrupted())
                    round();
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
        System.out.println("OK " + rounds);
    }
}
