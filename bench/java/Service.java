// SPDX-License-Identifier: MIT
// What the services of this folder have in common: the JDK's HTTP server with four threads. Each request does a round of work, and every 16th
// one keeps a direct buffer. Answers have one length. /kept says how many bytes were kept.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

public class Service {
    interface Work {
        long round(long n) throws Exception;
    }

    static final int BYTES = 4000;
    static final List<ByteBuffer> kept = new ArrayList<>();
    static final AtomicLong requests = new AtomicLong();

    static synchronized void keep(long n) {
        kept.add(ByteBuffer.allocateDirect(BYTES)); // leaks
    }

    static synchronized long kept() {
        return (long) kept.size() * BYTES;
    }

    static void answer(HttpExchange exchange, long value) throws IOException {
        byte[] text = String.format("{\"value\":\"%016x\"}%n", value).getBytes(StandardCharsets.US_ASCII);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(200, text.length);
        exchange.getResponseBody().write(text);
        exchange.close();
    }

    static long request(Work work) throws Exception {
        long n = requests.getAndIncrement();
        if (n % 16 == 0)
            keep(n);
        return work.round(n);
    }

    static void serve(int port, Work work) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 64);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/kept", exchange -> answer(exchange, kept()));
        server.createContext("/", exchange -> {
            try {
                answer(exchange, request(work));
            } catch (Exception e) {
                e.printStackTrace();
                exchange.sendResponseHeaders(500, -1);
            }
        });
        server.start();
        System.out.println("PID " + ProcessHandle.current().pid());
        System.out.println("PORT " + server.getAddress().getPort());
        System.out.println("READY");
    }
}
