<%-- SPDX-License-Identifier: MIT --%><%@ page contentType="application/json" session="false" trimDirectiveWhitespaces="true" %><%!
static final java.util.concurrent.atomic.AtomicLong requests = new java.util.concurrent.atomic.AtomicLong();
static final java.util.List<java.nio.ByteBuffer> kept = new java.util.ArrayList<>();

static synchronized void keep() {
    kept.add(java.nio.ByteBuffer.allocateDirect(4000)); // leaks
}

static synchronized long bytesKept() {
    return 4000L * kept.size();
}

static long round(long n) throws Exception {
    byte[] in = ("{\"order\":" + n + ",\"text\":\"" + "x".repeat((int) (n % 3000)) + "\"}").getBytes(), out = new byte[4000];
    java.util.zip.Deflater deflater = new java.util.zip.Deflater();
    deflater.setInput(in);
    deflater.finish();
    int bytes = deflater.deflate(out);
    deflater.end();
    return bytes;
}
%><%
boolean asked = request.getParameter("kept") != null;
long n = asked ? 0 : requests.getAndIncrement();
if (!asked && n % 16 == 0)
    keep();
out.print(String.format("{\"value\":\"%016x\"}", asked ? bytesKept() : round(n)));
%>
