// SPDX-License-Identifier: MIT
// A round: Netty reads a request into its pooled direct buffers, and answers it compressed. Every 16th request keeps one of its buffers.
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

public class NettyService {
    static final int BYTES = 4000;
    static final AtomicLong requests = new AtomicLong();
    static final List<ByteBuf> kept = new ArrayList<>();

    static synchronized void keep() {
        kept.add(Unpooled.directBuffer(BYTES)); // leaks
    }

    static synchronized long bytesKept() {
        return (long) kept.size() * BYTES;
    }

    static final class Handler extends SimpleChannelInboundHandler<FullHttpRequest> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            boolean asked = request.uri().equals("/kept");
            long n = asked ? 0 : requests.getAndIncrement();
            if (!asked && n % 16 == 0)
                keep();
            ByteBuf large = context.alloc().directBuffer(1000 + (int) (n * 7919 % 40000)).writeLong(n);
            ByteBuf text = context.alloc().directBuffer(64);
            text.writeCharSequence(String.format("{\"value\":\"%016x\"}%n", asked ? bytesKept() : large.readLong()), StandardCharsets.US_ASCII);
            large.release();
            DefaultFullHttpResponse response = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK, text);
            response.headers().set("Content-Length", text.readableBytes()).set("Connection", "keep-alive");
            context.writeAndFlush(response);
        }
    }

    public static void main(String[] arguments) throws Exception {
        NioEventLoopGroup group = new NioEventLoopGroup(2);
        ServerBootstrap bootstrap = new ServerBootstrap();
        bootstrap.group(group).channel(NioServerSocketChannel.class).childHandler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel channel) {
                channel.config().setAllocator(PooledByteBufAllocator.DEFAULT);
                channel.pipeline().addLast(new HttpServerCodec(), new HttpObjectAggregator(1 << 16), new Handler());
            }
        });
        bootstrap.bind("127.0.0.1", Integer.parseInt(arguments[0])).sync().channel().closeFuture().sync();
    }
}
