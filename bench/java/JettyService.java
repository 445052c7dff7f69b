// SPDX-License-Identifier: MIT
// Jetty 9 with a handler. A round: a text is compressed and read back, as in a filter of its.
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.zip.Deflater;
import java.util.zip.Inflater;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.AbstractHandler;

public class JettyService extends AbstractHandler {
    static long round(long n) throws Exception {
        byte[] text = ("order " + n + " of ").repeat(50).getBytes(StandardCharsets.US_ASCII), packed = new byte[2000];
        Deflater deflater = new Deflater();
        Inflater inflater = new Inflater();
        try {
            deflater.setInput(text);
            deflater.finish();
            inflater.setInput(packed, 0, deflater.deflate(packed));
            return inflater.inflate(text);
        } finally {
            deflater.end();
            inflater.end();
        }
    }

    @Override
    public void handle(String target, Request base, HttpServletRequest request, HttpServletResponse response) throws IOException {
        try {
            long value = target.equals("/kept") ? Service.kept() : Service.request(JettyService::round);
            response.setContentType("application/json");
            response.getWriter().printf("{\"value\":\"%016x\"}%n", value);
            base.setHandled(true);
        } catch (Exception e) {
            throw new IOException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
        server.setHandler(new JettyService());
        server.start();
        server.join();
    }
}
